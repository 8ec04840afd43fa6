"""The steps that bring a pod into the runtime and keep it running. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from nominee.kubelet import emulation, instructions
from nominee.kubelet.instructions import PodInstruction, RecordContainerEvents, RecordEvent, SyncLater
from nominee.kubelet.pod_sync import container_events, deadline, probe_step
from nominee.kubelet.pod_sync.step import EARLY_SECONDS_MAX, Pass
from nominee.kubelet.pods import crash_loop, sub_paths
from nominee.kubelet.pods.record import Outcome, Waiting
from nominee.kubelet.pods.states import Step, Trigger
from nominee.kubelet.runtime.sandbox import Container, PodSandbox
from nominee.machinery.api.pb import core

_PULL_FAILED: Final = "ErrImagePull"
_SHOWN_SECONDS: Final = 1.0
"""How long the status shows that a pull failed before it shows the back-off."""


def check_deadline(p: Pass) -> Trigger | None:
    """End a pod that was active for longer than its activeDeadlineSeconds."""
    record, sync = p.record, p.record.sync
    if not record.pod.spec.HasField("activeDeadlineSeconds"):
        return None
    seconds = record.pod.spec.activeDeadlineSeconds
    if sync.deadline_seconds != seconds:
        p.forget(Step.CHECK_DEADLINE)
        sync.deadline_seconds = seconds
    taken = None if record.sandbox is None else record.sandbox.started
    left = deadline.seconds_left(record.pod, sync.deadline_seconds, taken=taken, now=p.at.now)
    if left > EARLY_SECONDS_MAX:
        pause = min(left, deadline.CHECK_SECONDS)
        if not p.waits(Step.CHECK_DEADLINE, pause):
            p.forget(Step.CHECK_DEADLINE)
            p.waits(Step.CHECK_DEADLINE, pause)
        return None
    record.outcome = Outcome(reason=deadline.REASON, message=deadline.MESSAGE, unready=True)
    p.out.append(RecordEvent(record.pod, "Normal", deadline.REASON, deadline.MESSAGE))
    return Trigger.END


def create(p: Pass) -> Trigger | PodInstruction:
    """Create the sandbox, unless an earlier process did."""
    if p.record.sandbox is not None:
        return Trigger.SANDBOX_CREATED
    for problem in emulation.problems(p.record.pod):
        p.out.append(RecordEvent(p.record.pod, "Warning", "InvalidAnnotation", problem))
    return instructions.CreateSandbox(p.record.uid, p.record.pod)


def pull(p: Pass) -> None:
    """Try to pull the images, where an annotation says that they cannot be pulled for a while.

    Only the first container is tried where it is an init container; the others wait for it.
    Source: kubelet 1.36, pkg/kubelet/images (EnsureImageExists), with its back-off.
    """
    record, sync, own = p.record, p.record.sync, sandbox(p)
    missing = emulation.image_pull(_values(p))
    if own.begun or not missing:
        return
    first = own.containers[0]
    names = [one.name for one in own.containers if not first.init or one is first]
    due = p.due(Step.PULL)
    if due is not None and due > p.at.monotonic + EARLY_SECONDS_MAX:
        if any(one.reason == _PULL_FAILED for one in (sync.waiting or {}).values()):
            p.out.append(RecordContainerEvents(tuple(container_events.pull_backs_off(record.pod, names))))
            sync.waiting = {name: _pull(record.pod, name, again=False) for name in names}
        return
    if p.at.now - own.started + EARLY_SECONDS_MAX >= missing:
        p.forget(Step.PULL)
        sync.waiting, sync.pulls = None, 0
        return
    sync.pulls += 1
    sync.waiting = {name: _pull(record.pod, name, again=True) for name in names}
    for name in names:
        error = sync.waiting[name].message
        p.out.append(RecordContainerEvents(tuple(container_events.pull_failed(record.pod, [name], error))))
    p.wait(Step.PULL, crash_loop.seconds(sync.pulls))
    p.out.append(SyncLater(record.uid, crash_loop.seconds(sync.pulls)))
    p.out.append(SyncLater(record.uid, _SHOWN_SECONDS))


def _pull(pod: core.Pod, name: str, *, again: bool) -> Waiting:
    """Return the waiting state of a container whose image was tried again, or waits for that."""
    image = container_events.image_of(pod, name)
    problem = f'failed to resolve reference "{image}": {image}: not found'
    error = f'failed to pull and unpack image "{image}": {problem}'
    if again:
        return Waiting(_PULL_FAILED, error)
    return Waiting("ImagePullBackOff", f'Back-off pulling image "{image}": {_PULL_FAILED}: {error}')


def start(p: Pass) -> Trigger | PodInstruction | None:
    """Start the containers once their time has come, unless an earlier process did.

    A container that cannot be created holds up all of its pod; upstream starts the others.
    """
    record = p.record
    if sandbox(p).begun:
        return Trigger.STARTED
    if p.due(Step.PULL) is not None:
        return None
    if p.waits(Step.START, p.node.settings.delays.of(record.pod, record.restarts).start):
        return None
    errors = sub_paths.problems(record.pod)
    if errors:
        waiting = {name: Waiting("CreateContainerConfigError", error) for name, error in errors.items()}
        if waiting != record.sync.waiting:
            p.out.append(RecordContainerEvents(tuple(container_events.failure_events(record.pod, errors))))
        record.sync.waiting = waiting
        return None
    return instructions.StartContainers(record.uid, record.pod, p.node.allocated(record))


def restart(p: Pass) -> PodInstruction | None:
    """Start ended containers again, once their back-off is over, and those whose image has changed."""
    images = _changed_images(p)
    if images:
        return _change_images(p, images)
    names = _backed_off(p, sandbox(p).crashed)
    if not names:
        return None
    _begin_run(p)
    return instructions.StartCrashedContainers(p.record.uid, names, p.node.allocated(p.record))


def _backed_off(p: Pass, crashed: Iterable[Container]) -> tuple[str, ...]:
    """Return the containers that start again now; for the others their back-off begins, or goes on.

    Source: kubelet 1.36, doBackOff.
    """
    record, sync, now = p.record, p.record.sync, p.at.now
    before, allocated = sync.waiting or {}, p.node.allocated(record)
    waiting: dict[str, Waiting] = {}
    over: list[str] = []
    for one in crashed:
        key = container_events.image_of(record.pod, one.name), allocated.of(one.name)
        back_off = sync.back_offs.get(one.name)
        if back_off is not None and not back_off.is_of(*key, now + EARLY_SECONDS_MAX):
            back_off = None
        since = one.last_finished if one.name in before else one.back_off_since
        if back_off is not None and since and back_off.until(since) > now + EARLY_SECONDS_MAX:
            message = crash_loop.message(record.pod, one.name, back_off.seconds)
            waiting[one.name] = Waiting(crash_loop.REASON, message)
            _wait_until(p, Step.RESTART, back_off.until(one.last_finished))
            continue
        over.append(one.name)
        if since:
            sync.back_offs[one.name] = crash_loop.following(back_off, *key, now)
    begun = [name for name in waiting if name not in before]
    if begun:
        p.out.append(RecordContainerEvents(tuple(container_events.backing_off(record.pod, begun))))
    sync.waiting = waiting or None
    return tuple(over)


def _wait_until(p: Pass, step: Step, time: float) -> None:
    """Let the pod be synced for a step at a time (seconds since the epoch), unless one is due before."""
    due, seconds = p.due(step), max(time - p.at.now, 0.0)
    if due is None or not p.at.monotonic + EARLY_SECONDS_MAX < due <= p.at.monotonic + seconds:
        p.wait(step, seconds)
        p.out.append(SyncLater(p.record.uid, seconds))


def _changed_images(p: Pass) -> Mapping[str, str]:
    """Return the new images of containers that run, or have crashed, with another one.

    Source: kubelet 1.36, computePodActions (containerChanged).
    """
    spec = p.record.pod.spec
    return {
        own.name: new.image
        for own, new in zip(sandbox(p).containers, (*spec.initContainers, *spec.containers), strict=False)
        if own.image not in ("", new.image) and (own.state == "running" or own.crashed)
    }


def _change_images(p: Pass, images: Mapping[str, str]) -> PodInstruction:
    """Start containers with other images, whatever the restartPolicy says, and whatever their back-off was.

    Source: kubelet 1.36, GetBackoffKey: the image is part of the back-off's key.
    """
    sync, allocated = p.record.sync, p.node.allocated(p.record)
    changed = [one for one in sandbox(p).containers if one.name in images]
    running = [one.name for one in changed if one.state == "running"]
    for one in changed:
        if one.last_id:
            back_off = crash_loop.following(None, images[one.name], allocated.of(one.name), p.at.now)
            sync.back_offs[one.name] = back_off
    p.out.append(RecordContainerEvents(tuple(container_events.changed(p.record.pod, running))))
    p.forget(Step.PROBE)
    p.forget(Step.EXIT)
    return instructions.ChangeImages(p.record.uid, images, allocated)


def _begin_run(p: Pass) -> None:
    """Forget the times of the former run of containers that start again.

    That of its end has passed where they crashed, and the checkpoint with the crash could not be saved.
    """
    p.forget(Step.PROBE)
    end = p.due(Step.EXIT)
    if end is not None and end <= p.at.monotonic + EARLY_SECONDS_MAX:
        p.forget(Step.EXIT)


def probe(p: Pass) -> PodInstruction | None:
    """Let containers that run become ready, once their time has come."""
    record, own = p.record, sandbox(p)
    spans = emulation.probes(_values(p))
    if spans:
        return probe_step.follow(p, own, spans, p.node.settings.delays.of(record.pod, record.restarts).ready)
    if all(one.ready for one in own.containers if one.state == "running"):
        return None
    if p.waits(Step.PROBE, p.node.settings.delays.of(record.pod, record.restarts).ready):
        return None
    return instructions.ProbeContainers(record.uid)


def exit_(p: Pass) -> Trigger | PodInstruction | None:
    """End containers whose pod's annotation says so: the pod, or for its restartPolicy only this run.

    Containers that have ended already, which a former kubelet stopped for a reason that is forgotten (a
    preemption), run again as the restartPolicy says. kubelet 1.36 makes a new sandbox for them, too: the pod
    gets another address, and its init containers run again (computePodActions). Here it keeps its sandbox.
    """
    record, own = p.record, sandbox(p)
    again = _ended_too_early(p, own)
    if again:
        return instructions.CrashContainers(record.uid, 0, again)
    if not own.running:
        return None if own.crashed else Trigger.EXITED
    if all(one.state == "exited" for one in own.containers if not one.init):
        return instructions.ExitContainers(record.uid, 0)  # sidecars, which end with the others
    values = _values(p)
    duration, code = emulation.run_duration(values), emulation.exit_code(values)
    if duration is None or p.waits(Step.EXIT, duration):
        return None
    if _runs_again(p, code):
        return instructions.CrashContainers(record.uid, code)
    return instructions.ExitContainers(record.uid, code)


def _ended_too_early(p: Pass, own: PodSandbox) -> tuple[str, ...]:
    """Return the containers that have ended and are to run again; sidecars as long as another one runs."""
    main = [one for one in own.containers if not one.init]
    again = [one.name for one in main if one.state == "exited" and _runs_again(p, one.exit_code)]
    if again or any(one.state == "running" for one in main):
        again += [one.name for one in own.containers if one.sidecar and one.state == "exited"]
    return tuple(again)


def _runs_again(p: Pass, exit_code: int) -> bool:
    """Return whether a container that ends with this code is to run again."""
    policy = p.record.pod.spec.restartPolicy
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def debug(p: Pass) -> PodInstruction | None:
    """Start the ephemeral containers that are new in a running pod (kubectl debug)."""
    record = p.record
    if not record.pod.spec.ephemeralContainers:
        return None
    own = sandbox(p)
    known = {container.name for container in own.ephemeral}
    names = (one.ephemeralContainerCommon.name for one in record.pod.spec.ephemeralContainers)
    added = tuple(name for name in names if name not in known)
    if not added or not own.running:
        return None
    return instructions.StartEphemeralContainers(record.uid, added)


def _values(p: Pass) -> Mapping[str, str]:
    """Return the annotations that hold for the present run of the containers."""
    return emulation.of(p.record.pod, p.record.restarts)


def sandbox(p: Pass) -> PodSandbox:
    """Return the pod's sandbox.

    Raises:
        LookupError: the runtime has none, which must not be in the pod's state.
    """
    if p.record.sandbox is None:
        raise LookupError(f"pod {p.record.uid} has no sandbox in state {p.record.state!r}")
    return p.record.sandbox
