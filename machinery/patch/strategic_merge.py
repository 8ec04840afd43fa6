"""Apply a strategic merge patch to a JSON document.

Maps merge by key, lists as the table of messages says: replaced, or merged by a key (or by value, for lists
of scalars). Directives: `$patch` (replace, delete), `$deleteFromPrimitiveList/field`,
`$setElementOrder/field`, `$retainKeys`. Source: k8s.io/apimachinery's strategicpatch, 1.36.
"""

from __future__ import annotations

from nominee.machinery.patch.strategic_schema import (
    DELETE,
    DELETE_FROM_LIST,
    DIRECTIVE,
    MERGE,
    REPLACE,
    RETAIN_KEYS,
    SET_ORDER,
    Json,
    PatchError,
    Positions,
    Shape,
    bad_directive,
    bad_type,
    check_elements,
    go_text,
    go_type,
    identity,
    no_merge_key,
    root,
    rule,
    same,
    sort_like,
)

_Map = dict[str, Json]
_List = list[Json]

_BAD_DELETION = "invalid patch format of primitive list"
_BAD_ORDER = "invalid patch format of setElementOrder list"
_NO_ORDER = "{} of a list that is replaced as a whole: its elements are {}, which have no merge key"
_BAD_RETAIN_KEYS = "invalid patch format of retainKeys"


def strategic_merge_patch(message_full_name: str, document: _Map, patch: _Map) -> _Map:
    """Return the document with the patch applied; neither argument is changed.

    Raises:
        PatchError: the patch does not fit.
        KeyError: the message is not in the table.
    """
    return _merge_map(document, patch, root(message_full_name))


def _merge_map(original: _Map, patch: _Map, shape: Shape) -> _Map:
    if DIRECTIVE in patch:
        directive = patch[DIRECTIVE]
        if directive == REPLACE:
            return {key: value for key, value in patch.items() if key != DIRECTIVE}
        if directive == DELETE:
            return {}
        raise bad_directive(directive, patch)
    result, patch = dict(original), dict(patch)
    _retain_keys(result, patch)
    _set_orders(result, patch, shape)
    for key, value in patch.items():
        deleting = key.startswith(DELETE_FROM_LIST)
        field = _directed_field(key, DELETE_FROM_LIST, _BAD_DELETION) if deleting else key
        if value is None:
            result.pop(field, None)
        elif field not in result or go_type(result[field]) != go_type(value):
            if not deleting:
                _take(result, field, value)
        elif isinstance(value, dict):
            field_rule = rule(shape, field)
            replaces = field_rule.strategy == REPLACE
            result[field] = value if replaces else _merge_map(result[field], value, field_rule.shape)
        elif isinstance(value, list):
            result[field] = _merge_list(result[field], value, shape, field, deleting)
        else:
            result[field] = value
    return result


def _directed_field(key: str, prefix: str, problem: str) -> str:
    """Return the field of a key such as `$setElementOrder/containers`."""
    found, slash, field = key.partition("/")
    if found != prefix or not slash:
        raise PatchError(problem, 400)
    return field


def _take(result: _Map, field: str, value: Json) -> None:
    """Set a field to the patch's value without its directives, or drop it where that leaves nothing."""
    kept, value = _without_directives(value)
    if kept:
        result[field] = value
    else:
        result.pop(field, None)


def _without_directives(value: Json) -> tuple[bool, Json]:
    if isinstance(value, dict):
        if DIRECTIVE in value:
            return False, None
        cleaned = {}
        for key, each in value.items():
            kept, each = (False, None) if each is None else _without_directives(each)
            if kept:
                cleaned[key] = each
        return True, cleaned
    if isinstance(value, list):
        elements = [_without_directives(each) for each in value]
        return True, [each for kept, each in elements if kept]
    return True, value


def _retain_keys(result: _Map, patch: _Map) -> None:
    """Apply `$retainKeys`: remove all other keys (of a union: the other member)."""
    if RETAIN_KEYS not in patch:
        return
    retained = patch.pop(RETAIN_KEYS)
    if not isinstance(retained, list):
        raise PatchError(_BAD_RETAIN_KEYS, 400)
    for key, value in patch.items():
        if value is None or key.startswith((DELETE_FROM_LIST, SET_ORDER)):
            continue
        if key not in retained:
            raise PatchError(_BAD_RETAIN_KEYS, 400)
    for key in [key for key in result if key not in retained]:
        del result[key]


def _set_orders(result: _Map, patch: _Map, shape: Shape) -> None:
    """`$setElementOrder/field`: merges that field's list and puts it in the order given.

    Elements that the order does not name keep their places between the others as well as can be.
    """
    for key in [key for key in patch if key.startswith(SET_ORDER)]:
        order = patch.pop(key)
        if not isinstance(order, list):
            raise bad_type([], order)
        field = _directed_field(key, SET_ORDER, _BAD_ORDER)
        original, patched = result.get(field), patch.get(field)
        for found in (original, patched):
            if found is not None and not isinstance(found, list):
                raise bad_type([], found)
        field_rule = rule(shape, field)
        if not field_rule.merge_key:
            _check_is_sortable(key, [*order, *(original or []), *(patched or [])])
        _check_order(patched, order, field_rule.merge_key)
        if original is None and patched is None:
            continue
        if patched is None:
            merged = original
        elif original is None:
            merged = patched = _without_directives(patched)[1]
        else:
            merged = _merge_list(original, patched, shape, field, deleting=False)
        assert merged is not None
        merge_key = field_rule.merge_key
        is_map = check_elements(original or [], patched or []) == go_type({})
        ours, servers = _partition(merged, order, merge_key)
        result[field] = _interleave(
            sort_like(servers, original or [], merge_key if is_map else ""),
            sort_like(ours, order, merge_key if is_map else ""),
            original or [],
            merge_key if is_map else "",
        )
        patch.pop(field, None)


def _check_is_sortable(key: str, elements: _List) -> None:
    """Check that elements without a merge key can be compared.

    Upstream's server panics (it hashes maps), and closes the connection without an answer.
    """
    for element in elements:
        if isinstance(element, dict | list):
            raise PatchError(_NO_ORDER.format(key, go_type(element)))


def _check_order(patched: Json, order: _List, merge_key: str) -> None:
    """Check that the patch's elements are in the order list, in that order."""
    if not order or not patched:
        return
    elements: _List = patched
    if merge_key:
        for element in elements:
            if not isinstance(element, dict):
                raise bad_type({}, element)
        elements = [element for element in elements if element.get(DIRECTIVE) != DELETE]
    index = at = 0
    while index < len(elements) and at < len(order):
        if isinstance(elements[index], dict) and DIRECTIVE in elements[index]:
            index += 1
            continue
        if _same_key(elements[index], order[at], merge_key):
            index += 1
        at += 1
    if index < len(elements):
        raise PatchError(
            f"The order in patch list:\n{go_text(patched)}\n doesn't match {SET_ORDER} list:\n"
            f"{go_text(order)}\n"
        )


def _same_key(one: Json, other: Json, merge_key: str) -> bool:
    if not merge_key:
        return same(one, other)
    for element in (one, other):
        if not isinstance(element, dict):
            raise bad_type({}, element)
        if merge_key not in element:
            raise no_merge_key(element, merge_key)
    return same(one[merge_key], other[merge_key])


def _partition(merged: _List, named: _List, merge_key: str) -> tuple[_List, _List]:
    """Return the elements that `named` has, and the rest."""
    if merge_key:
        for element in merged:
            if not isinstance(element, dict):
                raise bad_type({}, element)
            if merge_key not in element:
                raise no_merge_key(element, merge_key)
    positions = Positions(named, merge_key)
    ours = [element for element in merged if positions.of(element) >= 0]
    servers = [element for element in merged if positions.of(element) < 0]
    return ours, servers


def _interleave(servers: _List, ours: _List, server_order: _List, merge_key: str) -> _List:
    """Merge both lists in their own order; a server's element goes before ours if it did in the object."""
    result: _List = []
    at, positions = 0, Positions(server_order, merge_key)
    for mine in ours:
        place = positions.of(mine)
        while at < len(servers):
            other = positions.of(servers[at])
            if place < 0 or other < 0 or other >= place:
                break
            result.append(servers[at])
            at += 1
        result.append(mine)
    return result + servers[at:]


def _merge_list(original: _List, patch: _List, shape: Shape, field: str, deleting: bool) -> _List:
    field_rule = rule(shape, field)
    if field_rule.strategy != MERGE and not deleting:
        return patch
    if not original and not patch:
        return original
    merge_key = field_rule.merge_key
    if check_elements(original, patch) != go_type({}):
        if deleting:
            positions = Positions(patch, "")
            return [each for each in original if positions.of(each) < 0]
        merged = unique(original + patch)
        merge_key = ""
    else:
        if not merge_key:
            raise PatchError("cannot merge lists without merge key for type struct")
        original, patch = _apply_element_directives(original, patch, merge_key)
        merged = _merge_elements(original, patch, merge_key, field_rule.shape)
    ours, servers = _partition(merged, patch, merge_key)
    return _interleave(
        sort_like(servers, original, merge_key), sort_like(ours, patch, merge_key), original, merge_key
    )


def unique(values: _List) -> _List:
    """Remove repetitions as upstream does: the last value moves into the gap."""
    values = list(values)
    if len({identity(value) for value in values}) == len(values):
        return values
    at = 0
    while at < len(values):
        other = at + 1
        while other < len(values):
            if same(values[at], values[other]):
                values[other] = values[-1]
                values.pop()
            else:
                other += 1
        at += 1
    return values


def _apply_element_directives(original: _List, patch: _List, merge_key: str) -> tuple[_List, _List]:
    """Apply elements with `$patch`: delete removes the element, replace makes the patch's others the list."""
    plain: _List = []
    deleted: set[tuple[str, Json]] = set()
    replaces = False
    for element in patch:
        directive = element.get(DIRECTIVE)
        if directive is None:
            plain.append(element)
        elif directive == DELETE:
            if merge_key not in element:
                raise no_merge_key(element, merge_key)
            deleted.add(identity(element[merge_key]))
        elif directive == REPLACE:
            replaces = True
        elif directive == MERGE:
            raise PatchError("merging lists cannot yet be specified in the patch")
        else:
            raise bad_directive(directive, element)
    if deleted:
        original = [
            each for each in original if merge_key not in each or identity(each[merge_key]) not in deleted
        ]
    return (plain, []) if replaces else (original, plain)


def _merge_elements(original: _List, patch: _List, merge_key: str, shape: Shape) -> _List:
    merged, positions = list(original), Positions(original, merge_key)
    for element in patch:
        if merge_key not in element:
            raise no_merge_key(element, merge_key)
        at = positions.of(element)
        if at >= 0:
            merged[at] = _merge_map(merged[at], element, shape)
        else:
            positions.add(element, len(merged))
            merged.append(element)  # directives deeper in it stay, and mean nothing to who decodes it
    return merged
