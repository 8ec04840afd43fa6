"""Sets of field paths as trees, and their JSON (FieldsV1).

A member is a path in the set; children lead to longer paths and do not imply the path itself. A set is never
changed after its creation: results of operations share parts.

Source: structured-merge-diff v6, fieldpath/set.go and serialize.go.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from nominee.apiserver.managed_fields.fields import paths
from nominee.apiserver.managed_fields.fields.paths import SELF, BadElement, Path


class FieldSet:
    """See the module. Only the function that created a set may call `insert`."""

    __slots__ = ("children", "members")

    def __init__(self, members: Iterable[str] = (), children: dict[str, FieldSet] | None = None) -> None:
        self.members: set[str] = set(members)
        self.children: dict[str, FieldSet] = children if children is not None else {}

    @classmethod
    def of(cls, *made: Path) -> FieldSet:
        found = cls()
        for path in made:
            found.insert(path)
        return found

    def insert(self, path: Iterable[str]) -> None:
        """Add a path; its parents do not become members. The empty path is ignored."""
        *parents, last = (*path,) or (None,)
        if last is None:
            return
        here = self
        for element in parents:
            assert element is not None
            below = here.children.get(element)
            if below is None:
                below = here.children[element] = FieldSet()
            here = below
        here.members.add(last)

    def __bool__(self) -> bool:
        return bool(self.members) or any(self.children.values())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FieldSet):
            return NotImplemented
        return self.members == other.members and self._full_children() == other._full_children()

    __hash__ = None  # type: ignore[assignment]

    def _full_children(self) -> dict[str, FieldSet]:
        return {element: child for element, child in self.children.items() if child}

    def __contains__(self, path: Path) -> bool:
        here: FieldSet | None = self
        for element in path[:-1]:
            here = here.children.get(element) if here is not None else None
        return here is not None and bool(path) and path[-1] in here.members

    def below(self, element: str) -> FieldSet:
        """Return the members below an element, without the element."""
        return self.children.get(element) or EMPTY

    def __or__(self, other: FieldSet) -> FieldSet:
        if not other:
            return self
        children = dict(self.children)
        for element, child in other.children.items():
            mine = children.get(element)
            children[element] = child if mine is None else mine | child
        return FieldSet(self.members | other.members, children)

    def __and__(self, other: FieldSet) -> FieldSet:
        children = {}
        for element, child in self.children.items():
            theirs = other.children.get(element)
            common = child & theirs if theirs is not None else None
            if common:
                children[element] = common
        return FieldSet(self.members & other.members, children)

    def __sub__(self, other: FieldSet) -> FieldSet:
        """Return the set without the other's members; members below them stay."""
        if not other:
            return self
        children = {}
        for element, child in self.children.items():
            theirs = other.children.get(element)
            left = child - theirs if theirs is not None else child
            if left:
                children[element] = left
        return FieldSet(self.members - other.members, children)

    def without_trees(self, other: FieldSet) -> FieldSet:
        """Return the set without the other's members and everything below them."""
        if not other:
            return self
        children = {}
        for element, child in self.children.items():
            if element in other.members:
                continue
            theirs = other.children.get(element)
            left = child.without_trees(theirs) if theirs is not None else child
            if left:
                children[element] = left
        return FieldSet(self.members - other.members, children)

    def paths(self, before: Path = ()) -> Iterator[Path]:
        """Yield all members in order; those of a level come before those below."""
        for element in sorted(self.members, key=paths.order):
            yield (*before, element)
        for element in sorted(self.children, key=paths.order):
            yield from self.children[element].paths((*before, element))

    def __repr__(self) -> str:
        return f"<FieldSet {' '.join(paths.shown_path(path) for path in self.paths())}>"


EMPTY = FieldSet()


def encode(found: FieldSet) -> bytes:
    """Return FieldsV1's raw JSON."""
    return json.dumps(_tree(found, own=False), separators=(",", ":"), ensure_ascii=False).encode()


def _tree(found: FieldSet, *, own: bool) -> dict[str, Any]:
    tree: dict[str, Any] = {SELF: {}} if own else {}
    for element in sorted({*found.members, *found.children}, key=paths.order):
        child = found.children.get(element)
        if child:
            tree[element] = _tree(child, own=element in found.members)
        elif element in found.members:
            tree[element] = {}
    return tree


@lru_cache(maxsize=2048)
def decode(raw: bytes) -> FieldSet:
    """Return the set of FieldsV1's raw JSON, cached since most entries stay as they are.

    Raises: BadElement.
    """
    try:
        tree = json.loads(raw or b"{}")
    except (ValueError, RecursionError) as error:
        raise BadElement(str(error)) from None
    if tree is None:
        return EMPTY
    if not isinstance(tree, dict):
        raise BadElement("no object")
    found, _ = _from_tree(tree)
    return found or EMPTY


def _from_tree(tree: Any) -> tuple[FieldSet | None, bool]:
    """Return the members below, and whether the path itself is a member."""
    made: FieldSet | None = None
    own = False
    if isinstance(tree, dict):
        for text, inner in tree.items():
            if text == SELF:
                own = True
                continue
            element = paths.parse(text)
            if element is None:
                continue
            below, member = _from_tree(inner)
            made = made or FieldSet()
            if member:
                made.members.add(element)
            if below is not None:
                made.children[element] = below
    return made, own or made is None
