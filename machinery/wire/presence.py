"""Make a message's bytes those of Go: non-pointer fields are on the wire even when empty.

gogo-protobuf writes every scalar and sub-message that is no Go pointer (`generateName ""`, an empty
`creationTimestamp`); pointers, lists and maps only when set. The work is planned once a message type.
Source: machinery/wire/table.tsv, and bytes measured on kube-apiserver 1.36.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from nominee.machinery.runtime.memo import CachedChange
from nominee.machinery.wire.schema import messages

# Time and MicroTime write no seconds when they are zero; a set one always writes both.
_TIMES = frozenset(
    f"k8s.io.apimachinery.pkg.apis.meta.v1.{name}" for name in ("Time", "MicroTime", "Timestamp")
)


_ENTRIES_MAX = 512
"""Filled messages that are cached for each type; then all of the type are dropped."""
_BYTES_MAX = 4 << 10
"""A larger message is not cached."""
_CHECKS_MIN = 6
"""Of a type with fewer fields to look at, looking at them costs less than a look-up."""
_DISTINCT = frozenset({"k8s.io.apimachinery.pkg.apis.meta.v1.ObjectMeta"})
"""Types whose messages all differ."""


@dataclass(slots=True)
class _Plan:
    """The fields of a type that are looked at.

    `filled` has messages to which nothing is to be added; `empty` is what an empty message becomes.
    """

    scalars: tuple[tuple[str, Any], ...] = ()
    times: tuple[str, ...] = ()
    required: tuple[tuple[str, _Plan], ...] = ()
    pointers: tuple[tuple[str, _Plan], ...] = ()
    lists: tuple[tuple[str, _Plan], ...] = ()
    maps: tuple[tuple[str, _Plan], ...] = ()
    filled: set[bytes] | None = None
    empty: bytes | None = None

    @property
    def costs_more_than_a_look_up(self) -> bool:
        checks = sum(map(len, (self.scalars, self.times, self.required, self.pointers)))
        return bool(self.lists or self.maps) or checks >= _CHECKS_MIN


def _zero(type_name: str) -> Any:
    if type_name == "string":
        return ""
    if type_name == "bytes":
        return b""
    if type_name == "bool":
        return False
    return 0


_plans: dict[str, _Plan] = {}


def _plan_of(full_name: str) -> _Plan:
    plan = _plans.get(full_name)
    if plan is not None:
        return plan
    plan = _plans[full_name] = _Plan()  # known before its fields: messages may recurse
    message = messages().get(full_name)
    if message is None or full_name in _TIMES:
        return plan
    scalars: list[tuple[str, Any]] = []
    times: list[str] = []
    required: list[tuple[str, _Plan]] = []
    pointers: list[tuple[str, _Plan]] = []
    lists: list[tuple[str, _Plan]] = []
    maps: list[tuple[str, _Plan]] = []
    for field in message.fields:
        if field.is_scalar:
            if field.label == "optional" and not field.pointer and field.type != "bytes":
                scalars.append((field.name, _zero(field.type)))
            continue
        always = field.label == "optional" and not field.pointer
        if field.type in _TIMES:
            if always:
                times.append(field.name)
            continue
        target = (field.name, _plan_of(field.type))
        if always:
            required.append(target)
        else:
            {"repeated": lists, "map": maps}.get(field.label, pointers).append(target)
    plan.scalars, plan.times, plan.required = tuple(scalars), tuple(times), tuple(required)
    plan.pointers, plan.lists, plan.maps = tuple(pointers), tuple(lists), tuple(maps)
    if plan.costs_more_than_a_look_up and full_name not in _DISTINCT:
        plan.filled = set()
    return plan


def _fill(message: Any, plan: _Plan) -> None:
    filled, has = plan.filled, message.HasField
    # A message that lacks its last scalar is not filled, and need not be looked up.
    begun = not plan.scalars or has(plan.scalars[-1][0])
    if filled is not None and begun and message.SerializeToString() in filled:
        return
    for name, zero in plan.scalars:
        if not has(name):
            setattr(message, name, zero)
    for name in plan.times:
        if not has(name):
            getattr(message, name).SetInParent()
    for name, inner in plan.required:
        value = getattr(message, name)
        if has(name):
            _fill(value, inner)
        elif inner.empty is not None:
            value.MergeFromString(inner.empty)
        else:
            value.SetInParent()
            _fill(value, inner)
            inner.empty = value.SerializeToString() or None
    for name, inner in plan.pointers:
        if has(name):
            _fill(getattr(message, name), inner)
    for name, inner in plan.lists:
        for value in getattr(message, name):
            _fill(value, inner)
    for name, inner in plan.maps:
        for value in getattr(message, name).values():
            _fill(value, inner)
    if filled is not None:
        data = message.SerializeToString()
        if len(data) <= _BYTES_MAX:
            if len(filled) >= _ENTRIES_MAX:
                filled.clear()
            filled.add(data)


def fill(message: Message) -> None:
    """Set, in place, every field that Go always writes."""
    _fill(message, _plan_of(message.DESCRIPTOR.full_name))


_fill_pod_spec = CachedChange[Any](fill)


def fill_pod(pod: Any) -> None:
    """Fill a pod as `fill` does, quicker where its spec is one that came before.

    The spec's messages may be replaced: a reference to one of them refers to the old one afterwards.
    """
    fill(pod.metadata)
    _fill_pod_spec(pod.spec)
    fill(pod.status)
