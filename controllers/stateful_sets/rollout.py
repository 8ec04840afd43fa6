"""The pods and claims that a stateful set creates, changes and deletes next. Pure.

Source: kube-controller-manager 1.36, pkg/controller/statefulset (updateStatefulSet).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from nominee.controllers.deployments.sizes import amount
from nominee.controllers.owned_pods.readiness import is_available
from nominee.controllers.stateful_sets import retention
from nominee.controllers.stateful_sets.identity import (
    claims_of,
    correction,
    is_consistent,
    new_claim,
    new_pod,
    ordinal_of,
    ordinals,
    revision_of,
)
from nominee.controllers.stateful_sets.status import is_running_and_ready
from nominee.machinery.api.objects import has_ended, is_terminating
from nominee.machinery.api.pb import apps, core

CREATIONS_MAX: Final = 500
"""Pods of a parallel set that are created in one reconciliation: spec.replicas may be two billion."""
ClaimLister = Callable[[str], core.PersistentVolumeClaim | None]


@dataclass(frozen=True, slots=True)
class Step:
    """The writes about one pod, in the order of the fields; the pod's own write is last."""

    verb: Literal["create", "update", "delete", "claims"]
    """The pod's own write; `claims`: none."""
    pod: core.Pod
    new_claims: tuple[core.PersistentVolumeClaim, ...] = ()
    ending_claims: tuple[str, ...] = ()
    """Claims that terminate: the pod cannot have them, and the step fails."""
    changed_claims: tuple[core.PersistentVolumeClaim, ...] = ()
    contested_claims: tuple[str, ...] = ()
    """Claims that another controller owns: the retention policy does not apply to them."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of a reconciliation: a phase begins when all steps of the one before succeeded.

    The steps of a phase are done one after the other where the set is ordered, else at the same time.
    """

    phases: tuple[tuple[Step, ...], ...] = ()
    ordered: bool = True


@dataclass(frozen=True, slots=True)
class Observation:
    """A stateful set as a reconciliation sees it; `claim` finds a claim of its namespace by name."""

    of: apps.StatefulSet
    pods: Sequence[core.Pod]
    claim: ClaimLister
    current: apps.ControllerRevision
    update: apps.ControllerRevision
    now_seconds: float
    counts_unavailable: bool
    """MaxUnavailableStatefulSet: an update may have several pods away."""

    def is_running_and_available(self, pod: core.Pod | None) -> bool:
        if pod is None or not is_running_and_ready(pod):
            return False
        return is_available(pod, self.of.spec.minReadySeconds, self.now_seconds)

    def is_unavailable(self, pod: core.Pod | None) -> bool:
        return pod is None or is_terminating(pod) or not self.is_running_and_available(pod)

    def is_outdated(self, pod: core.Pod | None) -> bool:
        """Report whether a pod of an earlier revision is still to be deleted."""
        if pod is None or is_terminating(pod) or has_ended(pod):
            return False
        return revision_of(pod) != self.update.metadata.name


def plan(seen: Observation) -> Plan:
    """Return the next steps: first the pods that are missing, then those too many, then the update."""
    of = seen.of
    ordered = of.spec.podManagementPolicy != "Parallel"
    if is_terminating(of):
        return Plan()
    by_ordinal = {ordinal_of(pod): pod for pod in seen.pods}
    replicas: list[core.Pod | None] = []
    steps: list[Step] = []
    creations = 0
    for ordinal in ordinals(of):
        pod = by_ordinal.pop(ordinal, None)
        replicas.append(pod)
        step, waits = _replica(seen, ordinal, pod, ordered=ordered)
        steps += [step] if step is not None else []
        creations += step is not None and step.verb == "create"
        if (waits and ordered) or creations == CREATIONS_MAX:
            return Plan((tuple(steps),) if steps else (), ordered)
    condemned = [by_ordinal[ordinal] for ordinal in sorted(by_ordinal, reverse=True)]
    fixes = [_claims_step(seen, pod, create=False) for pod in condemned]
    phases = [steps, [step for step in fixes if step is not None]]
    if ordered and condemned:
        phases.append([Step("delete", pod) for pod in _next_condemned(seen, condemned)])
    else:
        phases.append([Step("delete", pod) for pod in condemned if not is_terminating(pod)])
        if of.spec.updateStrategy.type == "RollingUpdate":
            phases.append([Step("delete", pod) for pod in _outdated(seen, replicas)])
    return Plan(tuple(tuple(phase) for phase in phases if phase), ordered)


def _replica(
    seen: Observation, ordinal: int, pod: core.Pod | None, *, ordered: bool
) -> tuple[Step | None, bool]:
    """Return the step that is due for an ordinal, and whether the ordinals after it wait for that."""
    of = seen.of
    if pod is None:
        partition = of.spec.updateStrategy.rollingUpdate.partition
        is_old = ordinal < of.spec.ordinals.start + partition
        made = new_pod(of, ordinal, seen.current if is_old else seen.update)
        claims = [seen.claim(name) for _, name in claims_of(of, made.metadata.name)]
        if any(claim is not None and retention.blocks_creation(of, made, claim) for claim in claims):
            return None, True
        return _with_claims(seen, Step("create", made)), True
    if has_ended(pod):
        return (None if is_terminating(pod) else Step("delete", pod)), True
    is_pending = pod.status.phase == "Pending"
    step = _claims_step(seen, pod, create=is_pending)
    if ordered and (is_terminating(pod) or not seen.is_running_and_available(pod)):
        return (step if is_pending else None), True
    if not is_consistent(of, pod):
        return _with_claims(seen, Step("update", correction(of, pod))), False
    if step is not None and not is_pending:
        return Step("update", pod, (), (), step.changed_claims, step.contested_claims), False
    return step, False


def _with_claims(seen: Observation, step: Step, *, create: bool = True) -> Step:
    """Return the step with the creations and changes of the pod's claims that are due."""
    of, pod = seen.of, step.pod
    new: list[core.PersistentVolumeClaim] = []
    ending: list[str] = []
    changed: list[core.PersistentVolumeClaim] = []
    contested: list[str] = []
    for template, name in claims_of(of, pod.metadata.name):
        claim = seen.claim(name)
        if claim is None:
            new += [new_claim(of, template, name)] if create else []
            continue
        if create and is_terminating(claim):
            ending.append(name)
        change = retention.changed_claim(of, pod, claim)
        if change is not None:
            changed.append(change)
            contested += [name] if retention.has_other_controller(of, pod, claim) else []
    return Step(step.verb, pod, tuple(new), tuple(ending), tuple(changed), tuple(contested))


def _claims_step(seen: Observation, pod: core.Pod, *, create: bool) -> Step | None:
    """Return the step that brings a pod's claims up to date, or None if they are."""
    step = _with_claims(seen, Step("claims", pod), create=create)
    return step if step.new_claims or step.ending_claims or step.changed_claims else None


def _next_condemned(seen: Observation, condemned: Sequence[core.Pod]) -> Iterator[core.Pod]:
    """Yield the pod of the highest ordinal, unless it terminates or waits for an unavailable one below."""
    last = condemned[0]
    first_unavailable = next((pod for pod in reversed(condemned) if seen.is_unavailable(pod)), None)
    if not is_terminating(last) and (seen.is_running_and_available(last) or last is first_unavailable):
        yield last


def _outdated(seen: Observation, replicas: Sequence[core.Pod | None]) -> Iterable[core.Pod]:
    """Return the pods to delete for the update, highest ordinal first."""
    rolling = seen.of.spec.updateStrategy.rollingUpdate
    targets = [*reversed(replicas[rolling.partition :])]
    old = [pod for pod in targets if pod is not None and seen.is_outdated(pod)]
    if not seen.counts_unavailable:
        # One at a time, and none before all above it are available again.
        first = next((pod for pod in targets if seen.is_outdated(pod) or seen.is_unavailable(pod)), None)
        return [first] if first is not None and seen.is_outdated(first) else []
    budget = _max_unavailable(seen.of) - sum(seen.is_unavailable(pod) for pod in replicas)
    if seen.of.spec.podManagementPolicy != "Parallel":
        return old[: max(0, budget)]
    # Pods that are unavailable already cost nothing.
    broken = [pod for pod in old if not seen.is_running_and_available(pod)]
    sound = [pod for pod in old if seen.is_running_and_available(pod)]
    return broken + sound[: max(0, budget)]


def _max_unavailable(of: apps.StatefulSet) -> int:
    """Return how many pods may be unavailable, at least 1; a percentage rounds down."""
    rolling = of.spec.updateStrategy.rollingUpdate
    if not rolling.HasField("maxUnavailable"):
        return 1
    return max(1, amount(rolling.maxUnavailable, of.spec.replicas, up=False))
