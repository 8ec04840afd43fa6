"""Estimate the worst cost of evaluating a selector, before it is evaluated for any device.

Each step of the expression has a cost; a loop costs as much as the longest list or map that the API allows
there. Sizes and costs are ranges (least, most), up to `MOST`. Source: cel-go 0.26, checker/cost.go;
k8s.io/apiserver 1.36, pkg/cel/library/cost.go; k8s.io/dynamic-resource-allocation/cel 1.36, device's sizes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from nominee.pb.nominee_cel.checked_pb2 import CheckedExpr, Comprehension, Expr, Type

MOST = 2**64 - 1
COST_MAX = 1_000_000
"""Of a device selector (`CELSelectorExpressionMaxCost`)."""
_TRAVERSAL, _REGEX = 0.1, 0.25  # a character that is looked at; a character of a pattern
_LIST, _MAP, _STRUCT = 10, 30, 40
_VALUES_MAX = 48  # in all lists of a device
_SCALARS = frozenset((1, 2, 3, 4))  # bool, int64, uint64, double
_STRINGS = frozenset((5, 6))  # string, bytes
_TIMES = frozenset((2, 3))  # timestamp, duration
_OURS = frozenset(("kubernetes.Quantity", "kubernetes.Semver"))
Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """From `least` to `most`."""

    least: int
    most: int

    def __add__(self, other: Span) -> Span:
        return Span(min(self.least + other.least, MOST), min(self.most + other.most, MOST))

    def __mul__(self, other: Span) -> Span:
        return Span(min(self.least * other.least, MOST), min(self.most * other.most, MOST))

    def __or__(self, other: Span) -> Span:
        return Span(min(self.least, other.least), max(self.most, other.most))

    def times(self, factor: float) -> Span:
        """Rounded up."""
        return Span(min(math.ceil(self.least * factor), MOST), min(math.ceil(self.most * factor), MOST))


NONE, ONE, ANY = Span(0, 0), Span(1, 1), Span(0, MOST)


@dataclass(frozen=True, slots=True)
class Sized:
    """The known size of a value in a device: the most characters or entries, and the sizes inside."""

    most: int
    key: Sized | None = None
    value: Sized | None = None
    fields: Mapping[str, Sized] = field(default_factory=dict)
    any_field: bool = False  # fields are entries too, whatever their names


def _device(list_attributes: bool) -> Sized:
    attribute = Sized(max(64, _VALUES_MAX) if list_attributes else 64)
    attributes = Sized(32, Sized(63), Sized(32, Sized(32), attribute, any_field=True))
    capacity = Sized(32, Sized(63), Sized(32, Sized(32), Sized(0)))
    fields = {"driver": Sized(63), "attributes": attributes, "capacity": capacity}
    return Sized(MOST, fields={**fields, "allowMultipleAllocations": Sized(1)})


@dataclass(frozen=True, slots=True)
class _Variable:
    path: Path
    size: Span | None
    entries: _Entries | None = None


@dataclass(frozen=True, slots=True)
class _Entries:
    """Sizes of the elements of a list or map that the expression makes."""

    is_list: bool
    key: Span
    value: Span

    def __or__(self, other: _Entries) -> _Entries:
        return _Entries(self.is_list, self.key | other.key, self.value | other.value)


@dataclass(frozen=True, slots=True)
class _Call:
    cost: Span
    size: Span | None = None


def worst_cost(checked: CheckedExpr, *, list_attributes: bool) -> int:
    """Return the most that evaluating can cost; `checked` is a CheckedExpr (see `checked.py`)."""
    return _Coster(checked, _device(list_attributes)).cost(checked.expr).most


class _Coster:
    def __init__(self, checked: CheckedExpr, device: Sized) -> None:
        self._device = device
        self._types = {row.key: row.value for row in checked.types}
        self._overloads = {row.key: list(row.value.overloads) for row in checked.references}
        self._paths: dict[int, Path] = {}
        self._sizes: dict[int, Span] = {}
        self._entries: dict[int, _Entries] = {}
        self._variables: dict[str, list[_Variable]] = {}

    # Costs by kind of expression

    def cost(self, e: Expr) -> Span:
        if e.HasField("ident"):
            return self._ident(e)
        if e.HasField("select"):
            return self._select(e)
        if e.HasField("call"):
            return self._call(e)
        if e.HasField("list"):
            return self._list(e)
        if e.HasField("struct"):
            return self._struct(e)
        return self._loop(e) if e.HasField("loop") else NONE

    def _ident(self, e: Expr) -> Span:
        """`device.attributes` is one name here, and a name and a field upstream."""
        name = e.ident.name
        variable = self._variable(name)
        self._paths[e.id] = tuple(name.split(".")) if variable is None else variable.path
        return Span(1, 1) if variable is not None else Span(1 + name.count("."), 1 + name.count("."))

    def _select(self, e: Expr) -> Span:
        operand = e.select.operand
        total = self.cost(operand)
        if e.select.test_only:
            return total + ONE
        type_ = self._types.get(operand.id)
        if type_ is not None and any(type_.HasField(kind) for kind in ("map", "message", "parameter")):
            total += ONE
        self._paths[e.id] = (*self._path(operand), e.select.field)
        return total

    def _list(self, e: Expr) -> Span:
        total, size = NONE, None
        for element in e.list.elements:
            total += self.cost(element)
            own = self._size_or_any(element)
            size = own if size is None else size | own
        self._entries[e.id] = _Entries(True, ONE, size or NONE)
        return total + Span(_LIST, _LIST)

    def _struct(self, e: Expr) -> Span:
        total, keys, values = NONE, NONE, NONE
        for number, entry in enumerate(e.struct.entries):
            if entry.HasField("key"):
                total += self.cost(entry.key)
                own = self._size_or_any(entry.key)
                keys = keys | own if number else own
            total += self.cost(entry.value)
            own = self._size_or_any(entry.value)
            values = values | own if number else own
        if e.struct.message:
            return total + Span(_STRUCT, _STRUCT)
        self._entries[e.id] = _Entries(False, keys, values)
        return total + Span(_MAP, _MAP)

    def _loop(self, e: Expr) -> Span:
        loop = e.loop
        total = self.cost(loop.iter_range) + self.cost(loop.accu_init)
        self._push(loop.accu_var, self._path(loop.accu_init), self._size(loop.accu_init), loop.accu_init)
        if _is_binding(loop):
            total += self.cost(loop.result)
            self._variables[loop.accu_var].pop()
            self._copy_sizes(e, loop.result)
            return total
        self._push_items(loop)
        each = self.cost(loop.condition) + self.cost(loop.step)
        self._variables[loop.iter_var].pop()
        if loop.iter_var2:
            self._variables[loop.iter_var2].pop()
        total += self.cost(loop.result)
        self._variables[loop.accu_var].pop()
        count = self._size_or_any(loop.iter_range)
        if loop.accu_init.HasField("constant"):
            self._set_size(e, self._size(loop.accu_init))
        elif loop.accu_init.HasField("list") or loop.accu_init.HasField("struct"):
            self._sizes[e.id] = count
            made = self._entry_sizes(loop.step)
            if made is not None:
                self._entries[e.id] = made
        return total + count * each

    def _push_items(self, loop: Comprehension) -> None:
        """Push the loop's variables; a map with one variable iterates over its keys."""
        range_, entries = loop.iter_range, self._entry_sizes(loop.iter_range)
        type_ = self._types.get(range_.id)
        is_list = entries.is_list if entries is not None else type_ is not None and type_.HasField("list")
        path = self._path(range_)
        value = (*path, "@items" if is_list else "@values"), entries.value if entries else None
        key = (*path, "@indices" if is_list else "@keys"), entries.key if entries else None
        first = key if loop.iter_var2 or not is_list else value
        self._push(loop.iter_var, *first)
        if loop.iter_var2:
            self._push(loop.iter_var2, *value)

    def _call(self, e: Expr) -> Span:
        call = e.call
        if call.function == "dyn" and len(call.args) == 1:
            cost = self.cost(call.args[0]) + ONE
            self._copy_sizes(e, call.args[0])
            return cost
        costs = [self.cost(arg) for arg in call.args]
        overloads = self._overloads.get(e.id, [])
        if not overloads:
            return NONE
        total = NONE
        target: Expr | None = None
        if call.HasField("target"):
            total, target = self.cost(call.target), call.target
        found: Span | None = None
        size: Span | None = None
        for overload in overloads:
            one = self._function(e, call.function, overload, target, list(call.args), costs)
            found = one.cost if found is None else found | one.cost
            if one.size is not None:
                size = one.size if size is None else size | one.size
            if overload in ("index_list", "index_map") and call.args:
                entries = self._entry_sizes(call.args[0])
                size = None if entries is None else entries.value
                inside = "@items" if overload == "index_list" else "@values"
                self._paths[e.id] = (*self._path(call.args[0]), inside)
            if size is None:
                size = self._size(e)
        self._set_size(e, size)
        return total + (found or NONE)

    # Costs by function

    def _function(
        self,
        e: Expr,
        name: str,
        overload: str,
        target: Expr | None,
        args: Sequence[Expr],
        costs: Sequence[Span],
    ) -> _Call:
        given = sum(costs, NONE)
        known = self._library(name, target, args)
        if known is None and name == "_==_" and self._are_alike(args):
            known = _Call(ONE)
        if known is not None:
            return _Call(known.cost + given, known.size)
        if overload in ("logical_or", "logical_and"):
            return _Call(Span(costs[0].least, (costs[0] + costs[1]).most))
        if overload == "conditional":
            return self._conditional(e, args, costs)
        how = _STANDARD.get(overload)
        if how is None:
            return _Call(ONE + given)
        found = how(self, e, target, args)
        return _Call(found.cost + given, found.size)

    def _are_alike(self, args: Sequence[Expr]) -> bool:
        """Return whether these are two quantities, or two versions."""
        types = [self._types[arg.id].message for arg in args if arg.id in self._types]
        return len(types) == 2 and types[0] == types[1] and types[0] in _OURS

    def _conditional(self, e: Expr, args: Sequence[Expr], costs: Sequence[Span]) -> _Call:
        one, other = self._entry_sizes(args[1]), self._entry_sizes(args[2])
        if one is not None and other is not None:
            self._entries[e.id] = one | other
        size = self._size_or_any(args[1]) | self._size_or_any(args[2])
        return _Call(costs[0] + (costs[1] | costs[2]), size)

    def _library(self, name: str, target: Expr | None, args: Sequence[Expr]) -> _Call | None:
        """Kubernetes' own estimates; None where the standard's count."""
        if target is None:
            return None
        if name == "includes":
            return _Call(Span(0, _VALUES_MAX))
        size = self._size_or_any(target)
        if name in ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"):
            return _Call(self._each_element(target, size))
        if name in ("lowerAscii", "upperAscii", "substring", "trim"):
            return _Call(size.times(_TRAVERSAL), size)
        if name == "format":
            return _Call(size.times(_TRAVERSAL))
        if name == "split":
            return _Call(size.times(2 * _TRAVERSAL), Span(0, self._parts_at_most(args, size)))
        if name == "join":
            return self._join(target, args, size)
        if name == "replace" and len(args) >= 2:
            made = _replaced(size, self._size_or_any(args[0]), self._size_or_any(args[1]))
            return _Call(size.times(2 * _TRAVERSAL), made)
        if name in ("find", "findAll") and args:
            pattern = self._size_or_any(args[0]).times(_REGEX)
            return _Call((size + ONE).times(_TRAVERSAL) * pattern, Span(0, size.most))
        return None

    def _each_element(self, target: Expr, size: Span) -> Span:
        type_ = self._types.get(target.id)
        if type_ is None or not (type_.HasField("list") or type_.HasField("map")):
            return size.times(_TRAVERSAL)
        element = type_.list.element if type_.HasField("list") else type_.map.key
        each = ONE
        if element.primitive in _STRINGS:
            each += (self._of_path((*self._path(target), "@items")) or ANY).times(_TRAVERSAL)
        return size * each

    def _parts_at_most(self, args: Sequence[Expr], size: Span) -> int:
        if len(args) > 1 and args[1].HasField("constant") and args[1].constant.HasField("int64"):
            return max(int(args[1].constant.int64), 0)
        return size.most

    def _join(self, target: Expr, args: Sequence[Expr], count: Span) -> _Call:
        each = self._of_path((*self._path(target), "@items")) or ANY
        size = count * each
        if args:
            between = Span(max(count.least - 1, 0), max(count.most - 1, 0))
            size += self._size_or_any(args[0]) * between
        return _Call(size.times(_TRAVERSAL), size)

    # The standard's functions, by overload

    def to_bytes(self, _e: Expr, _target: Expr | None, args: Sequence[Expr]) -> _Call:
        size = self._size_or_any(args[0])
        return _Call(size.times(_TRAVERSAL), Span(size.least, min(size.most * 4, MOST)))

    def to_string(self, _e: Expr, _target: Expr | None, args: Sequence[Expr]) -> _Call:
        size = self._size_or_any(args[0])
        return _Call(size.times(_TRAVERSAL), Span(size.least // 4, size.most))

    def starts(self, _e: Expr, _target: Expr | None, args: Sequence[Expr]) -> _Call:
        return _Call(self._size_or_any(args[0]).times(_TRAVERSAL))

    def in_list(self, _e: Expr, _target: Expr | None, args: Sequence[Expr]) -> _Call:
        return _Call(self._size_or_any(args[1]))

    def matches(self, _e: Expr, target: Expr | None, args: Sequence[Expr]) -> _Call:
        text, pattern = (target, args[0]) if target is not None else (args[0], args[1])
        looked = (self._size_or_any(text) + ONE).times(_TRAVERSAL)
        return _Call(looked * self._size_or_any(pattern).times(_REGEX))

    def contains(self, _e: Expr, target: Expr | None, args: Sequence[Expr]) -> _Call:
        assert target is not None, "a member function"
        return _Call(
            self._size_or_any(target).times(_TRAVERSAL) * self._size_or_any(args[0]).times(_TRAVERSAL)
        )

    def together(self, e: Expr, _target: Expr | None, args: Sequence[Expr]) -> _Call:
        """Strings put together are copied."""
        size = self._size_or_any(args[0]) + self._size_or_any(args[1])
        return _Call(size.times(_TRAVERSAL), size)

    def lists_together(self, e: Expr, _target: Expr | None, args: Sequence[Expr]) -> _Call:
        size = self._size_or_any(args[0]) + self._size_or_any(args[1])
        one, other = self._entry_sizes(args[0]), self._entry_sizes(args[1])
        if one is not None and other is not None:
            self._entries[e.id] = one | other
        return _Call(ONE, size)

    def compared(self, _e: Expr, _target: Expr | None, args: Sequence[Expr]) -> _Call:
        most = min(self._size_or_any(args[0]).most, self._size_or_any(args[1]).most)
        return _Call(Span(min(most, 1), most).times(_TRAVERSAL))

    # Sizes and places

    def _push(self, name: str, path: Path, size: Span | None, of: Expr | None = None) -> None:
        entries = None if of is None else self._entry_sizes(of)
        self._variables.setdefault(name, []).append(_Variable(path, size, entries))

    def _variable(self, name: str) -> _Variable | None:
        stack = self._variables.get(name)
        return stack[-1] if stack else None

    def _path(self, e: Expr) -> Path:
        if e.HasField("ident"):
            variable = self._variable(e.ident.name)
            if variable is not None:
                return variable.path
        return self._paths.get(e.id, ())

    def _set_size(self, e: Expr, size: Span | None) -> None:
        if size is not None:
            self._sizes[e.id] = size

    def _copy_sizes(self, to: Expr, of: Expr) -> None:
        self._set_size(to, self._size(of))
        entries = self._entry_sizes(of)
        if entries is not None:
            self._entries[to.id] = entries

    def _size_or_any(self, e: Expr) -> Span:
        return self._size(e) or ANY

    def _size(self, e: Expr) -> Span | None:
        known = self._sizes.get(e.id) or _literal_size(e) or self._of_path(self._path(e))
        if known is not None:
            return known
        if _is_scalar(self._types.get(e.id)):
            return ONE
        variable = self._variable(e.ident.name) if e.HasField("ident") else None
        return None if variable is None else variable.size

    def _of_path(self, path: Path) -> Span | None:
        """Return the size of a value in the device; None for a path that does not lead into it."""
        if not path or path[0] != "device":
            return None
        here: Sized | None = self._device
        for name in path[1:]:
            if here is None:
                return None
            if name in ("@items", "@values"):
                here = here.value
            elif name == "@keys":
                here = here.key
            else:
                here = here.value if here.any_field else here.fields.get(name)
        return None if here is None else Span(0, here.most)

    def _entry_sizes(self, e: Expr) -> _Entries | None:
        known = self._entries.get(e.id)
        if known is None and e.HasField("ident"):
            variable = self._variable(e.ident.name)
            return None if variable is None else variable.entries
        return known


_Cost = Callable[[_Coster, Expr, Expr | None, Sequence[Expr]], _Call]
_STANDARD: Mapping[str, _Cost] = {
    "string_to_bytes": _Coster.to_bytes,
    "bytes_to_string": _Coster.to_string,
    "starts_with_string": _Coster.starts,
    "ends_with_string": _Coster.starts,
    "in_list": _Coster.in_list,
    "matches_string": _Coster.matches,
    "matches": _Coster.matches,
    "contains_string": _Coster.contains,
    "add_string": _Coster.together,
    "add_bytes": _Coster.together,
    "add_list": _Coster.lists_together,
    **{
        f"{word}{suffix}": _Coster.compared
        for word in ("less", "greater", "less_equals", "greater_equals")
        for suffix in ("_string", "_bytes")
    },
    "equals": _Coster.compared,
    "not_equals": _Coster.compared,
}


def _is_binding(loop: Comprehension) -> bool:
    """`cel.bind`: a loop over nothing."""
    nothing = loop.iter_range.HasField("list") and not loop.iter_range.list.elements
    condition = loop.condition
    never = condition.HasField("constant") and condition.constant.HasField("bool")
    return bool(nothing and never and not condition.constant.bool and loop.accu_var != "@result")


def _literal_size(e: Expr) -> Span | None:
    if e.HasField("constant"):
        for kind in ("string", "bytes"):
            if e.constant.HasField(kind):
                length = len(getattr(e.constant, kind))
                return Span(length, length)
        return ONE
    if e.HasField("list"):
        return Span(len(e.list.elements), len(e.list.elements))
    if e.HasField("struct") and not e.struct.message:
        return Span(len(e.struct.entries), len(e.struct.entries))
    return None


def _is_scalar(type_: Type | None) -> bool:
    if type_ is None:
        return False
    if type_.HasField("abstract") and type_.abstract.name == "optional_type" and type_.abstract.parameters:
        return _is_scalar(type_.abstract.parameters[0])
    # Types (`type(x) == int`) are compared at once; upstream cannot say how large they are.
    return type_.primitive in _SCALARS or type_.well_known in _TIMES or type_.HasField("type")


def _replaced(size: Span, old: Span, new: Span) -> Span:
    """Return the length of a text in which `old` was replaced by `new` everywhere."""
    if old.least == 0:
        most = min((size.most + 1) * new.most + size.most, MOST)
    elif new.most <= old.least:
        most = size.most
    else:
        most = min(math.ceil(size.most / old.least) * new.most, MOST)
    if old.most == 0:
        least = min((size.least + 1) * new.least + size.least, MOST)
    elif old.most <= new.least:
        least = size.least
    else:
        least = min(math.ceil(size.least / old.most) * new.least, MOST)
    return Span(least, most)
