"""Merging of a document into another: nothing is removed, and the second document's values win.

List elements are ordered as in the second document, as far as it has them.

Source: structured-merge-diff v6, typed/merge.go.
"""

from __future__ import annotations

from typing import Any

from nominee.apiserver.managed_fields.fields.schema import ANY, Shape, Type
from nominee.apiserver.managed_fields.fields.typed import MISSING, item_key, resolve


def merge(live: Any, config: Any, declared: Type) -> Any:
    """Return the merged document, which shares parts with both; MISSING when it is empty.

    One side may be MISSING.
    """
    declared = resolve(declared, config, live)
    leaf = live if config is MISSING else config
    if declared.shape is Shape.SCALAR or declared.atomic:
        return leaf
    if declared.shape is Shape.LIST:
        mine, theirs = _list(live), _list(config)
        return _merge_lists(mine, theirs, declared) if mine or theirs else leaf
    old, new = _map(live), _map(config)
    if not old and not new:
        return leaf
    made = {}
    for name in [*old, *(name for name in new if name not in old)]:
        inner = merge(old.get(name, MISSING), new.get(name, MISSING), declared.field_type(name) or ANY)
        if inner is not MISSING:
            made[name] = inner
    return made or MISSING


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _map(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _merge_lists(live: list[Any], config: list[Any], declared: Type) -> Any:
    """Merge lists: shared elements in the order of `config`, the others of `live` between them as before."""
    assert declared.element is not None
    old_keys = [item_key(declared, item) for item in live]
    new_keys = [item_key(declared, item) for item in config]
    old: dict[str, Any] = {}
    for element, item in zip(old_keys, live, strict=True):
        # Duplicate elements are not merged.
        old[element] = None if element in old else item
    new = dict(zip(new_keys, config, strict=True))
    shared = [element for element in new_keys if element in old]
    made: list[Any] = []
    merged: set[str] = set()

    def put(mine: Any, theirs: Any) -> None:
        item = merge(mine, theirs, declared.element or ANY)
        if item is not MISSING:
            made.append(item)

    at_old = at_new = at_shared = 0
    while at_old < len(live) or at_new < len(config):
        if at_old < len(live):
            element = old_keys[at_old]
            if at_new < len(config):
                if element == new_keys[at_new]:
                    merged.add(element)
                    put(old[element], new[element])
                    at_old, at_new, at_shared = at_old + 1, at_new + 1, at_shared + 1
                    continue
                if element in new and at_shared < len(shared) and shared[at_shared] != element:
                    # It comes later in `config`.
                    at_old += 1
                    continue
            if element not in new:
                put(live[at_old], MISSING)
                at_old += 1
                continue
            if element in merged:
                at_old += 1
        if at_new < len(config):
            element = new_keys[at_new]
            merged.add(element)
            put(old.get(element, MISSING), new[element])
            at_new += 1
            if at_shared < len(shared) and shared[at_shared] == element:
                at_shared += 1
    return made or MISSING
