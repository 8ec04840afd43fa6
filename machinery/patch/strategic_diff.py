"""Compute the strategic merge patch from one JSON document to another.

What client-go's CreateTwoWayMergePatch makes, so that our processes write the patches that the real ones do.
Source: k8s.io/apimachinery's strategicpatch, 1.36.
"""

from __future__ import annotations

from nominee.machinery.patch.strategic_merge import unique
from nominee.machinery.patch.strategic_schema import (
    DELETE,
    DELETE_FROM_LIST,
    DIRECTIVE,
    MERGE,
    REPLACE,
    RETAIN_KEYS,
    SET_ORDER,
    Json,
    Shape,
    bad_type,
    check_elements,
    go_text,
    go_type,
    no_merge_key,
    root,
    rule,
    same,
    sort_like,
)

_Map = dict[str, Json]
_List = list[Json]


def diff_strategic(message_full_name: str, old: _Map, new: _Map) -> _Map:
    """Return a patch that makes `new` of `old`; empty if they are equal.

    Raises:
        PatchError: lists cannot be compared (an element without its merge key).
        KeyError: the message is not in the table.
    """
    return _diff_maps(old, new, root(message_full_name), retain_keys=False)


def _diff_maps(old: _Map, new: _Map, shape: Shape, *, retain_keys: bool) -> _Map:
    patch: _Map = {}
    for key, value in new.items():
        if key not in old or go_type(old[key]) != go_type(value):
            patch[key] = value
        elif isinstance(value, dict):
            _diff_field(key, old[key], value, patch, shape)
        elif isinstance(value, list):
            _diff_list_field(key, old[key], value, patch, shape)
        elif not same(old[key], value):
            patch[key] = value
    for key in old:
        if key not in new:
            patch[key] = None
    if retain_keys:
        retained = sorted(key for key, value in new.items() if value is not None)
        if retained and (patch or any(old[key] is not None and key not in new for key in old)):
            patch[RETAIN_KEYS] = retained
    return patch


def _diff_field(key: str, old: _Map, new: _Map, patch: _Map, shape: Shape) -> None:
    field_rule = rule(shape, key)
    if field_rule.strategy == REPLACE:
        # Upstream sends such a field whether or not it changed.
        patch[key] = new
        return
    inner = _diff_maps(old, new, field_rule.shape, retain_keys=field_rule.retain_keys)
    if inner:
        patch[key] = inner


def _diff_list_field(key: str, old: _List, new: _List, patch: _Map, shape: Shape) -> None:
    field_rule = rule(shape, key)
    if field_rule.strategy != MERGE:
        if old != new:
            patch[key] = new
        return
    if not old:
        if new:
            patch[key] = new
        return
    if check_elements(old, new) == go_type({}):
        changed = _diff_elements(old, new, field_rule.merge_key, field_rule.shape, field_rule.retain_keys)
        keys_changed = [each[field_rule.merge_key] for each in old] != [
            each[field_rule.merge_key] for each in new
        ]
        order: _List = []
        if changed or keys_changed:
            order = [{field_rule.merge_key: each[field_rule.merge_key]} for each in new]
    else:
        changed, deleted = _diff_scalars(old, new)
        changed = sort_like(changed, new, "")
        if deleted:
            patch[f"{DELETE_FROM_LIST}/{key}"] = deleted
        # Upstream has sorted the old list in place by now, so an unsorted list always "differs".
        order = new if deleted or sorted(old, key=go_text) != new else []
    if changed:
        patch[key] = changed
    if order:
        patch[f"{SET_ORDER}/{key}"] = order


def _diff_elements(old: _List, new: _List, merge_key: str, shape: Shape, retain_keys: bool) -> _List:
    """Changed and new elements in the new order, then the deleted ones, in the order of keys."""

    def key(element: Json) -> str:
        if not isinstance(element, dict):
            raise bad_type({}, element)
        if merge_key not in element:
            raise no_merge_key(element, merge_key)
        return go_text(element[merge_key])

    new_order = new
    old, new = sorted(old, key=key), sorted(new, key=key)
    changed: _List = []
    deleted: _List = []
    at_old = at_new = 0
    while at_old < len(old) or at_new < len(new):
        old_key = key(old[at_old]) if at_old < len(old) else None
        new_key = key(new[at_new]) if at_new < len(new) else None
        if old_key is not None and old_key == new_key:
            inner = _diff_maps(old[at_old], new[at_new], shape, retain_keys=retain_keys)
            if inner:
                changed.append(inner | {merge_key: new[at_new][merge_key]})
            at_old += 1
            at_new += 1
        elif old_key is None or (new_key is not None and old_key > new_key):
            changed.append(new[at_new])
            at_new += 1
        else:
            deleted.append({merge_key: old[at_old][merge_key], DIRECTIVE: DELETE})
            at_old += 1
    return sort_like(changed, new_order, merge_key) + deleted


def _diff_scalars(old: _List, new: _List) -> tuple[_List, _List]:
    """Values that are only in the new list, and those only in the old one; compared as texts."""
    old, new = sorted(old, key=go_text), sorted(new, key=go_text)
    added: _List = []
    deleted: _List = []
    at_old = at_new = 0
    while at_old < len(old) or at_new < len(new):
        old_text = go_text(old[at_old]) if at_old < len(old) else None
        new_text = go_text(new[at_new]) if at_new < len(new) else None
        if old_text is not None and old_text == new_text:
            at_old += 1
            at_new += 1
        elif old_text is None or (new_text is not None and old_text > new_text):
            added.append(new[at_new])
            at_new += 1
        else:
            deleted.append(old[at_old])
            at_old += 1
    return added, unique(deleted)
