"""Probes whose answers an annotation gives: when containers start, become ready and are killed. Pure.

Nothing is probed: since an annotation says when in a run a probe succeeds, the results of all its attempts
follow from the time of the run. Source: kubelet 1.36, pkg/kubelet/prober (worker.doProbe, prober.probe).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from nominee.kubelet import instructions
from nominee.kubelet.emulation import Span
from nominee.kubelet.instructions import PodInstruction, RecordContainerEvents, SyncLater
from nominee.kubelet.pod_sync import container_events
from nominee.kubelet.pod_sync.step import EARLY_SECONDS_MAX, Pass
from nominee.kubelet.pods.states import Step
from nominee.kubelet.runtime.sandbox import PodSandbox
from nominee.machinery.api.pb import core

KILLED: Final = 137
"""The exit code of a container whose probe failed."""


@dataclass(frozen=True, slots=True)
class Attempts:
    """The attempts of one probe in a run; times in seconds since the run's start."""

    probe: core.Probe
    span: Span
    first: float

    @property
    def _early(self) -> float:
        """Return how many attempts fail before the first that succeeds."""
        return self._before(self.span.begin)

    @property
    def _late(self) -> float:
        """Return the number of the first attempt that fails again."""
        return max(self._before(self.span.end), self._early)

    def _before(self, time: float) -> float:
        if math.isinf(time):
            return time
        return max(math.ceil((time - self.first) / self.probe.periodSeconds), 0)

    def _at(self, number: float) -> float:
        return self.first + number * self.probe.periodSeconds

    @property
    def succeeds(self) -> float:
        """Return when the probe has succeeded as often as it must; infinity if it does not."""
        number = self._early + self.probe.successThreshold - 1
        return self._at(number) if number < self._late else math.inf

    @property
    def fails(self) -> float:
        """Return when the probe has failed as often as it may, after a success if there is one before."""
        allowed = self.probe.failureThreshold
        return self._at(allowed - 1 if self._early >= allowed else self._late + allowed - 1)

    @property
    def fails_again(self) -> float:
        """Return when the probe has failed as often as it may after it succeeded."""
        return self._at(self._late + self.probe.failureThreshold - 1)

    def _made(self, time: float) -> int:
        """Return how many attempts were made."""
        return max(math.floor((time + EARLY_SECONDS_MAX - self.first) / self.probe.periodSeconds) + 1, 0)

    def failed_at(self, time: float) -> float | None:
        """Return when the last attempt was made, if it failed."""
        number = self._made(time) - 1
        failed = number >= 0 and not self._early <= number < self._late
        return self._at(number) if failed else None

    def next(self, time: float) -> float:
        """Return when the next attempt with a consequence is made; infinity without one."""
        number: float = max(
            math.floor((time + EARLY_SECONDS_MAX - self.first) / self.probe.periodSeconds) + 1, 0
        )
        if self._early + self.probe.successThreshold <= number < self._late:
            number = self._late
        return self._at(number)


@dataclass(frozen=True, slots=True)
class Health:
    """A container's state by its probes, at a time of its run."""

    starting: bool
    ready: bool
    killed_by: str
    failures: tuple[tuple[str, float], ...]
    """Probes whose last attempt failed, and when that was."""
    next: float


def health(container: core.Container, spans: Mapping[str, Span], ready_delay: float, time: float) -> Health:
    """Return the health of a container after `time` seconds of its run.

    A probe without annotation succeeds, the one of readiness after the delay; so does one that the container
    does not have.
    """
    begun, probes = 0.0, {}
    if container.HasField("startupProbe") and "startup" in spans:
        probe = container.startupProbe
        probes["startup"] = Attempts(probe, spans["startup"], float(probe.initialDelaySeconds))
        begun = probes["startup"].succeeds
    starting = time + EARLY_SECONDS_MAX < begun
    ready = not starting and time + EARLY_SECONDS_MAX >= ready_delay
    if not starting:
        probes = {}
        for name, probe in (("liveness", container.livenessProbe), ("readiness", container.readinessProbe)):
            if probe.periodSeconds and name in spans:
                probes[name] = Attempts(probe, spans[name], max(float(probe.initialDelaySeconds), begun))
    if "readiness" in probes:
        own = probes["readiness"]
        ready = own.succeeds <= time + EARLY_SECONDS_MAX < own.fails_again
    killed_by = [n for n, own in probes.items() if n != "readiness" and own.fails <= time + EARLY_SECONDS_MAX]
    failed = ((name, own.failed_at(time)) for name, own in probes.items())
    coming = [each for each in (ready_delay, *(own.next(time) for own in probes.values())) if each > time]
    return Health(
        starting,
        ready,
        killed_by[0] if killed_by else "",
        tuple((name, at) for name, at in failed if at is not None),
        min(coming, default=math.inf),
    )


def follow(p: Pass, own: PodSandbox, spans: Mapping[str, Span], ready_delay: float) -> PodInstruction | None:
    """Apply the results of the probes, and wait for the next attempts.

    Sidecars have no probe with an annotation: they become ready after the delay.
    """
    record, now = p.record, p.at.now
    seen = now if record.sync.probed_until is None else record.sync.probed_until
    record.sync.probed_until = now
    running = {one.name: one for one in own.containers if one.state == "running" and not one.init}
    rows = [
        (running[spec.name], spec, health(spec, spans, ready_delay, now - running[spec.name].started))
        for spec in record.pod.spec.containers
        if spec.name in running
    ]
    failures = tuple(
        container_events.unhealthy(record.pod, spec, name)
        for one, spec, found in rows
        for name, at in found.failures
        if at + one.started > seen - EARLY_SECONDS_MAX
    )
    killed = {one.name: found.killed_by for one, _, found in rows if found.killed_by}
    again = record.pod.spec.restartPolicy != "Never"
    notes = (*failures, *container_events.failed_probes(record.pod, killed, again=again))
    if notes:
        p.out.append(RecordContainerEvents(notes))
    if killed:
        p.forget(Step.EXIT)
        return instructions.KillContainers(record.uid, tuple(killed), KILLED, again=again)
    sidecars = [one for one in own.containers if one.state == "running" and one.init and not one.ready]
    left = [one.started + ready_delay - now for one in sidecars]
    coming = [now + each for each in left if each > EARLY_SECONDS_MAX]
    _wait(p, min((*coming, *(one.started + found.next for one, _, found in rows)), default=math.inf))
    is_same = all(one.ready == found.ready and one.starting == found.starting for one, _, found in rows)
    if is_same and len(coming) == len(sidecars):
        return None
    ready = tuple(one.name for one, _, found in rows if found.ready)
    starting = tuple(one.name for one, _, found in rows if found.starting)
    return instructions.ProbeContainers(record.uid, ready, starting)


def _wait(p: Pass, until: float) -> None:
    """Let the pod be synced at the next attempt, once."""
    due = p.due(Step.PROBE)
    if math.isfinite(until) and (due is None or due <= p.at.monotonic + EARLY_SECONDS_MAX):
        seconds = max(until - p.at.now, 0.0)
        p.wait(Step.PROBE, seconds)
        p.out.append(SyncLater(p.record.uid, seconds))
