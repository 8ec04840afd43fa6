"""Sets of field paths, and their JSON."""

from __future__ import annotations

import json
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nominee.apiserver.managed_fields.fields import field_set, paths
from nominee.apiserver.managed_fields.fields.field_set import FieldSet
from nominee.apiserver.managed_fields.fields.paths import BadElement, Path

NAMES = st.text(alphabet=string.ascii_letters + './-_ü<&"\\', min_size=1, max_size=6)
SCALARS = st.one_of(NAMES, st.integers(-10, 10**12), st.booleans())
ELEMENTS = st.one_of(
    NAMES.map(paths.field),
    st.dictionaries(NAMES, SCALARS, min_size=1, max_size=3).map(paths.key),
    SCALARS.map(paths.value),
    st.integers(0, 99).map(lambda index: f"i:{index}"),
)
PATHS = st.lists(ELEMENTS, min_size=1, max_size=4).map(tuple)
SETS = st.lists(PATHS, max_size=8).map(lambda found: FieldSet.of(*found))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(SETS)
def test_json_comes_back_as_the_same_set(found: FieldSet) -> None:
    raw = field_set.encode(found)
    assert field_set.decode(raw) == found
    assert field_set.encode(field_set.decode(raw)) == raw


@settings(max_examples=60, deadline=None, derandomize=True)
@given(SETS, SETS)
def test_operations_are_those_of_sets_of_paths(one: FieldSet, other: FieldSet) -> None:
    mine, theirs = set(one.paths()), set(other.paths())
    assert set((one | other).paths()) == mine | theirs
    assert set((one & other).paths()) == mine & theirs
    assert set((one - other).paths()) == mine - theirs
    below = {path for path in mine if any(path[: len(gone)] == gone for gone in theirs)}
    assert set(one.without_trees(other).paths()) == mine - below
    assert bool(one) == bool(mine)
    assert all(path in one for path in mine)


@pytest.mark.parametrize(
    ("path", "tree"),
    [
        (("f:spec", "f:replicas"), {"f:spec": {"f:replicas": {}}}),
        (("f:data", "f:a.b/c"), {"f:data": {"f:a.b/c": {}}}),
        (("f:ports", paths.key({"protocol": "TCP", "containerPort": 80})),
         {"f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {}}}),
        (("f:finalizers", paths.value("ex.com/a")), {"f:finalizers": {'v:"ex.com/a"': {}}}),
    ],
)  # fmt: skip
def test_json_is_as_kubernetes_writes_it(path: Path, tree: object) -> None:
    assert json.loads(field_set.encode(FieldSet.of(path))) == tree


def test_a_member_with_members_below_it_says_so_by_a_dot() -> None:
    found = FieldSet.of(("f:data",), ("f:data", "f:a"))
    assert field_set.encode(found) == b'{"f:data":{".":{},"f:a":{}}}'


def test_numbers_are_one_however_they_are_written() -> None:
    assert field_set.decode(b'{"f:p":{"k:{\\"port\\":80.0}":{}}}') == FieldSet.of(
        ("f:p", paths.key({"port": 80}))
    )


def test_elements_of_a_future_kind_are_left_out_and_broken_ones_refused() -> None:
    assert field_set.decode(b'{"x:later":{},"f:a":{}}') == FieldSet.of(("f:a",))
    for raw in (b"[]", b"{", b'{"f":{}}', b'{"k:[1]":{}}', b'{"v:{":{}}', b'{"i:one":{}}', b'{"fa":{}}'):
        with pytest.raises(BadElement):
            field_set.decode(raw)


def test_paths_are_shown_as_in_conflicts() -> None:
    path = ("f:spec", "f:containers", paths.key({"name": "c"}), "f:ports", paths.key({"containerPort": 80}))
    assert paths.shown_path(path) == '.spec.containers[name="c"].ports[containerPort=80]'
    assert paths.shown_path(("f:metadata", "f:finalizers", paths.value("a\n"))) == (
        '.metadata.finalizers[="a\\n"]'
    )
