"""Parse topology spread constraints, and make the default ones of pods that have none of their own.

Source: kube-scheduler 1.36, PodTopologySpread and PodTopologySpreadArgs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from nominee.machinery.api import kinds, names
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.pb import apps, core
from nominee.machinery.api.selectors import LabelSelector, Operator, Requirement
from nominee.machinery.wire import codec
from nominee.scheduler.framework.interface import Handle
from nominee.scheduler.framework.runtime.profile import ArgumentError
from nominee.scheduler.framework.types import PodInfo

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
HARD: Final = "DoNotSchedule"
SOFT: Final = "ScheduleAnyway"
HONOR: Final = "Honor"

_CONTROLLERS = frozenset(
    {("v1", "ReplicationController"), ("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet")}
)
_SYSTEM_DEFAULTS: Final = (
    core.TopologySpreadConstraint(maxSkew=3, topologyKey=HOSTNAME, whenUnsatisfiable=SOFT),
    core.TopologySpreadConstraint(maxSkew=5, topologyKey=ZONE, whenUnsatisfiable=SOFT),
)


@dataclass(frozen=True, slots=True)
class Constraint:
    """One constraint with defaults filled in."""

    max_skew: int
    key: str
    selector: LabelSelector
    min_domains: int = 1
    honors_affinity: bool = True
    honors_taints: bool = False


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads constraints; the flags are the gates of the two fields."""

    policies: bool  # NodeInclusionPolicyInPodTopologySpread
    match_label_keys: bool  # MatchLabelKeysInPodTopologySpread

    @classmethod
    def of(cls, handle: Handle) -> Reader:
        gates = handle.gates
        return cls(
            gates.enabled("NodeInclusionPolicyInPodTopologySpread"),
            gates.enabled("MatchLabelKeysInPodTopologySpread"),
        )

    def read(
        self, constraints: Iterable[core.TopologySpreadConstraint], labels: Mapping[str, str], action: str
    ) -> tuple[Constraint, ...]:
        """Return the constraints with this `whenUnsatisfiable`, for a pod with these labels.

        Raises:
            SelectorError: a selector is invalid.
        """
        return tuple(self._one(each, labels) for each in constraints if each.whenUnsatisfiable == action)

    def _one(self, constraint: core.TopologySpreadConstraint, labels: Mapping[str, str]) -> Constraint:
        selector = LabelSelector.from_message(
            constraint.labelSelector if constraint.HasField("labelSelector") else None
        )
        if self.match_label_keys and constraint.matchLabelKeys:
            selector = selector.adding(
                *(
                    Requirement(key, Operator.EQUALS, (labels[key],))
                    for key in sorted(set(constraint.matchLabelKeys))
                    if key in labels
                )
            )
        honors_affinity, honors_taints = True, False
        if self.policies:
            if constraint.HasField("nodeAffinityPolicy"):
                honors_affinity = constraint.nodeAffinityPolicy == HONOR
            if constraint.HasField("nodeTaintsPolicy"):
                honors_taints = constraint.nodeTaintsPolicy == HONOR
        return Constraint(
            constraint.maxSkew,
            constraint.topologyKey,
            selector,
            constraint.minDomains if constraint.HasField("minDomains") else 1,
            honors_affinity,
            honors_taints,
        )


class Defaults:
    """Constraints of pods that have none; they spread the pods of the pod's services and controller."""

    def __init__(
        self, constraints: Sequence[core.TopologySpreadConstraint], *, system: bool, handle: Handle
    ) -> None:
        """Take the constraints. `system`: the built-in ones, which do not require all topology labels."""
        reader = Reader.of(handle)
        self.system = system
        self._handle = handle
        self._read = {action: reader.read(constraints, {}, action) for action in (HARD, SOFT)}

    @classmethod
    def from_args(cls, args: Mapping[str, Any], handle: Handle) -> Defaults:
        """Return the defaults of PodTopologySpreadArgs.

        Raises:
            ArgumentError: an argument is invalid.
        """
        kind = args.get("defaultingType") or "System"
        if kind not in ("System", "List"):
            problem = names.not_supported("", kind, ("List", "System"))
            raise ArgumentError("defaultingType", problem.removeprefix(": "))
        documents = args.get("defaultConstraints") or ()
        if kind == "System":
            if documents:
                text = f'Invalid value: "{kind}": when .defaultConstraints are not empty'
                raise ArgumentError("defaultingType", text)
            return cls(_SYSTEM_DEFAULTS, system=True, handle=handle)
        return cls(_read_list(documents), system=False, handle=handle)

    def of(self, pod: PodInfo, action: str) -> tuple[Constraint, ...]:
        """Return the default constraints for the pod; none if no service or controller selects it."""
        constraints = self._read[action]
        if not constraints:
            return ()
        selector = self._selector(pod)
        if selector.empty:
            return ()
        return tuple(replace(constraint, selector=selector) for constraint in constraints)

    def _selector(self, pod: PodInfo) -> LabelSelector:
        """Return the selectors of the services and the controller of the pod, joined."""
        labels: dict[str, str] = {}
        for service in self._handle.lister(kinds.SERVICE).list(pod.namespace):
            selector = service.spec.selector
            if selector and all(pod.labels.get(key) == value for key, value in selector.items()):
                labels.update(selector)
        owner = next((each for each in pod.pod.metadata.ownerReferences if each.controller), None)
        if owner is None or (owner.apiVersion, owner.kind) not in _CONTROLLERS:
            return LabelSelector.from_map(labels)
        # A kind that is not served has no objects, hence nothing to add.
        kind: Kind[Any] | None = kinds.by_kind(owner.apiVersion, owner.kind)
        controller = None if kind is None else self._handle.lister(kind).get(owner.name, pod.namespace)
        if isinstance(controller, core.ReplicationController):
            labels.update(controller.spec.selector)
        selected = LabelSelector.from_map(labels)
        if isinstance(controller, apps.ReplicaSet | apps.StatefulSet):
            spec = controller.spec
            own = LabelSelector.from_message(spec.selector if spec.HasField("selector") else None)
            selected = selected.adding(*own.requirements)
        return selected


def _read_list(documents: Sequence[Any]) -> list[core.TopologySpreadConstraint]:
    found: list[core.TopologySpreadConstraint] = []
    for index, document in enumerate(documents):
        path = f"defaultConstraints[{index}]"
        try:
            constraint = codec.from_json(core.TopologySpreadConstraint, document)
        except codec.DecodeError as error:
            raise ArgumentError(path, str(error)) from error
        _check(constraint, path)
        pair = (constraint.topologyKey, constraint.whenUnsatisfiable)
        if any((other.topologyKey, other.whenUnsatisfiable) == pair for other in found):
            raise ArgumentError(path, f'Duplicate value: "{{{pair[0]}, {pair[1]}}}"')
        found.append(constraint)
    return found


def _check(constraint: core.TopologySpreadConstraint, path: str) -> None:
    if constraint.maxSkew <= 0:
        raise ArgumentError(
            f"{path}.maxSkew", f"Invalid value: {constraint.maxSkew}: not in valid range (0, inf)"
        )
    key, action = constraint.topologyKey, constraint.whenUnsatisfiable
    if not key:
        raise ArgumentError(f"{path}.topologyKey", "Required value: can not be empty")
    problems = names.qualified_name_problems(key)
    if problems:
        raise ArgumentError(f"{path}.topologyKey", f'Invalid value: "{key}": {problems[0]}')
    if not action:
        raise ArgumentError(f"{path}.whenUnsatisfiable", "Required value: can not be empty")
    if action not in (HARD, SOFT):
        problem = names.not_supported("", action, (HARD, SOFT))
        raise ArgumentError(f"{path}.whenUnsatisfiable", problem.removeprefix(": "))
    if constraint.HasField("labelSelector"):
        text = "Forbidden: constraint must not define a selector, as they deduced for each pod"
        raise ArgumentError(f"{path}.labelSelector", text)
