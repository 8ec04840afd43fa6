"""NodeAffinity: nodeSelector, required and preferred node affinity, and the profile's addedAffinity.

Source: kube-scheduler 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from nominee.machinery.api import names
from nominee.machinery.api.pb import core
from nominee.machinery.api.selectors import Operator, Requirement, SelectorError
from nominee.machinery.scheduling.node_affinity import (
    NAME_FIELD,
    NodeSelector,
    NodeTerm,
    PreferredTerms,
    RequiredNodeAffinity,
)
from nominee.machinery.wire import codec
from nominee.scheduler.framework.api.events import (
    ActionType,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    expect,
    on,
)
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import (
    Code,
    EnqueueExtensions,
    FilterPlugin,
    Handle,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Rows,
    ScorePlugin,
    Status,
)
from nominee.scheduler.framework.runtime.profile import ArgumentError
from nominee.scheduler.framework.types import NodeInfo, PodInfo
from nominee.scheduler.plugins.normalize import normalize_by_max

_REQUIRED = "PreFilterNodeAffinity"
_PREFERRED = "PreScoreNodeAffinity"
_ONE_OF = frozenset({Operator.IN, Operator.EQUALS, Operator.DOUBLE_EQUALS})
_NONE_OF = frozenset({Operator.NOT_IN, Operator.NOT_EQUALS})

Mask = NDArray[np.bool_]


class NodeAffinity(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin, EnqueueExtensions):
    """Arguments: `addedAffinity`, a core.NodeAffinity that holds for every pod of the profile."""

    name = "NodeAffinity"
    looks_at_pods = False
    _mismatch = Status(
        Code.UnschedulableAndUnresolvable, ("node(s) didn't match Pod's node affinity/selector",), name
    )
    _enforced = Status(
        Code.UnschedulableAndUnresolvable, ("node(s) didn't match scheduler-enforced node affinity",), name
    )
    _conflict = Status(Code.UnschedulableAndUnresolvable, ("pod affinity terms conflict",), name)

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._added: NodeSelector | None = None
        self._added_preferred: PreferredTerms | None = None
        affinity = args.get("addedAffinity")
        if affinity is not None:
            self._read_added(affinity)

    def _read_added(self, document: Any) -> None:
        try:
            affinity = codec.from_json(core.NodeAffinity, document)
        except codec.DecodeError as error:
            raise ArgumentError("addedAffinity", str(error)) from error
        if affinity.HasField("requiredDuringSchedulingIgnoredDuringExecution"):
            self._added = NodeSelector.read(affinity.requiredDuringSchedulingIgnoredDuringExecution)
            if self._added.errors:
                raise ArgumentError("addedAffinity", "; ".join(self._added.errors))
        preferred = affinity.preferredDuringSchedulingIgnoredDuringExecution
        if preferred:
            try:
                self._added_preferred = PreferredTerms.read(preferred)
            except SelectorError as error:
                raise ArgumentError("addedAffinity", str(error)) from error

    # PreFilter and Filter

    def pre_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status | None]:
        spec = pod.pod.spec
        affinity = pod.affinity
        has_required = affinity is not None and affinity.nodeAffinity.HasField(
            "requiredDuringSchedulingIgnoredDuringExecution"
        )
        if not has_required and not spec.nodeSelector and self._added is None:
            return None, Status(Code.Skip)
        state.write(_REQUIRED, RequiredNodeAffinity.of(pod.pod))
        if not has_required:
            return None, None
        names = _names_required(
            spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms
        )
        if names is None:
            return None, None
        if not names:
            return None, self._conflict
        return PreFilterResult(names), None

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        if self._added is not None and not self._added.matches(node.labels, node.name):
            return self._enforced
        required = self._required(state, pod)
        return None if required.matches(node.labels, node.name) else self._mismatch

    def _required(self, state: CycleState, pod: PodInfo) -> RequiredNodeAffinity:
        return state.get(_REQUIRED) or RequiredNodeAffinity.of(pod.pod)

    def filter_all(self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Mask | None:
        masks = []
        if self._added is not None:
            masks.append(selector_mask(snapshot, self._added, rows))
        required = self._required(state, pod)
        for key, value in required.node_selector:
            column = snapshot.label_column(key)
            masks.append(column.ids[rows] == column.id_of(value))
        if required.affinity is not None:
            masks.append(selector_mask(snapshot, required.affinity, rows))
        if not masks:
            return None
        return masks[0] if len(masks) == 1 else np.logical_and.reduce(masks)

    def explain_all(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: NDArray[np.intp]
    ) -> tuple[Sequence[Status], NDArray[np.intp]]:
        if self._added is None:
            return (self._mismatch,), np.zeros(len(rows), dtype=np.intp)
        added = selector_mask(snapshot, self._added, rows)
        return (self._enforced, self._mismatch), added.astype(np.intp)

    # Score

    def pre_score(self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Status | None:
        terms = self._preferred(pod)
        if terms is None:
            return Status(Code.Skip)
        state.write(_PREFERRED, terms)
        return None

    def _preferred(self, pod: PodInfo) -> PreferredTerms | None:
        """Return the pod's preferences and the added ones; None when there are neither."""
        affinity = pod.affinity
        own = affinity is not None and bool(
            affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution
        )
        if not own:
            return self._added_preferred
        terms = PreferredTerms.of(pod.pod)
        if self._added_preferred is not None:
            return PreferredTerms(self._added_preferred.terms + terms.terms)
        return terms

    def score_all(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: NDArray[np.intp]
    ) -> NDArray[np.int64]:
        scores = np.zeros(len(rows), dtype=np.int64)
        terms = state.get(_PREFERRED) or self._preferred(pod)
        if terms is not None:
            for weight, term in terms.terms:
                scores += weight * _term_mask(snapshot, term, rows).astype(np.int64)
        return scores

    def normalize(self, state: CycleState, pod: PodInfo, scores: NDArray[np.int64]) -> NDArray[np.int64]:
        return normalize_by_max(scores)

    # Queueing

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return (on(EventResource.Node, ActionType.Add | ActionType.UpdateNodeLabel, self._after_node_change),)

    def _after_node_change(self, pod: PodInfo, old: Message | None, new: Message | None) -> QueueingHint:
        old, new = expect(core.Node, old, new)
        if not isinstance(new, core.Node):
            return QueueingHint.Skip
        name = new.metadata.name
        if self._added is not None and not self._added.matches(new.metadata.labels, name):
            return QueueingHint.Skip
        required = RequiredNodeAffinity.of(pod.pod)
        if not _is_met(required, new):
            return QueueingHint.Skip
        matched_before = isinstance(old, core.Node) and _is_met(required, old)
        return QueueingHint.Skip if matched_before else QueueingHint.Queue


def _is_met(required: RequiredNodeAffinity, node: core.Node) -> bool:
    """Return whether the node is allowed.

    Raises:
        SelectorError: no term allows it, and one could not be parsed.
    """
    labels, name = node.metadata.labels, node.metadata.name
    if required.matches(labels, name):
        return True
    selected = all(labels.get(key) == value for key, value in required.node_selector)
    if selected and required.affinity is not None and required.affinity.errors:
        raise SelectorError(names.aggregate(list(required.affinity.errors)))
    return False


def _names_required(terms: Sequence[core.NodeSelectorTerm]) -> frozenset[str] | None:
    """Return the node names that the terms (ORed) allow; None when some term names none."""
    names: set[str] = set()
    for term in terms:
        own: set[str] | None = None
        for field in term.matchFields:
            if field.key == NAME_FIELD and field.operator == "In":
                own = set(field.values) if own is None else own & set(field.values)
        if own is None:
            return None
        names |= own
    return frozenset(names) if terms else None


def selector_mask(snapshot: Snapshot, selector: NodeSelector, rows: Rows) -> Mask:
    """Return a mask of the rows that a node selector matches."""
    masks = [_term_mask(snapshot, term, rows) for term in selector.terms]
    if not masks:
        return np.zeros(row_count(rows), dtype=np.bool_)
    return masks[0] if len(masks) == 1 else np.logical_or.reduce(masks)


def _term_mask(snapshot: Snapshot, term: NodeTerm, rows: Rows) -> Mask:
    if term.errors:
        return np.zeros(row_count(rows), dtype=np.bool_)
    masks = [_requirement_mask(snapshot, requirement, rows) for requirement in term.labels]
    masks += [_field_mask(snapshot, requirement, rows) for requirement in term.fields]
    if not masks:
        return np.ones(row_count(rows), dtype=np.bool_)
    return masks[0] if len(masks) == 1 else np.logical_and.reduce(masks)


def _requirement_mask(snapshot: Snapshot, requirement: Requirement, rows: Rows) -> Mask:
    column = snapshot.label_column(requirement.key)
    operator = requirement.operator
    if operator in _ONE_OF or operator in _NONE_OF:
        # Looked up by value: a label such as the host name has as many values as there are nodes.
        ids = column.ids[rows]
        mask: Mask = np.zeros(len(ids), dtype=np.bool_)
        for value in requirement.values:
            id_ = column.id_of(value)
            if id_ >= 0:
                mask |= ids == id_
        return mask if operator in _ONE_OF else ~mask
    if operator is Operator.EXISTS:
        present: Mask = column.ids[rows] != column.id_of(None)
        return present
    if operator is Operator.DOES_NOT_EXIST:
        absent: Mask = column.ids[rows] == column.id_of(None)
        return absent
    key = requirement.key
    return column.mask(lambda value: value is not None and requirement.matches({key: value}), rows)


def _field_mask(snapshot: Snapshot, requirement: Requirement, rows: Rows) -> Mask:
    """Return a mask of the rows that node fields match: only the name can match anything."""
    mask = np.zeros(len(snapshot), dtype=np.bool_)
    wanted = requirement.values[0]
    if requirement.key == NAME_FIELD:
        row = snapshot.row_of.get(wanted)
        if row is not None:
            mask[row] = True
    elif not wanted:
        mask[:] = True
    chosen = mask[rows]
    return chosen if requirement.operator is Operator.EQUALS else ~chosen


def row_count(rows: Rows) -> int:
    """Return how many rows these are."""
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows)
