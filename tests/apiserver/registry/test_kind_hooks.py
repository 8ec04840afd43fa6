"""What differs between kinds is in their rules: the steps that all kinds share name none."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from nominee.apiserver.kinds.table import RULES, rules_of
from nominee.apiserver.registry import registry
from nominee.apiserver.registry.deletions.collection import is_deletable
from nominee.machinery.api import kinds
from nominee.machinery.wire import presence

SHARED = (
    "collection",
    "context",
    "create",
    "delete",
    "deletion",
    "patch",
    "read",
    "rules",
    "store",
    "update",
)


@pytest.mark.parametrize("module", SHARED)
def test_a_shared_step_compares_with_no_kind(module: str) -> None:
    text = Path(registry.__file__).with_name(f"{module}.py").read_text(encoding="utf-8")
    names = {kind.kind.upper() for kind in RULES} | {"SERVICE", "NAMESPACE", "POD"}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare):
            for each in node.comparators:
                name = each.attr if isinstance(each, ast.Attribute) else getattr(each, "id", "")
                assert name not in names, f"{module}.py:{node.lineno} compares with {name}"


def test_only_services_take_addresses() -> None:
    assert [kind for kind, rules in RULES.items() if rules.takes_addresses] == [kinds.SERVICE]


def test_only_namespaces_have_content() -> None:
    assert [kind for kind, rules in RULES.items() if rules.has_content] == [kinds.NAMESPACE]
    assert not is_deletable(kinds.NAMESPACE, "")
    assert is_deletable(kinds.NODE, "")


@pytest.mark.parametrize("kind", [kinds.POD, kinds.SERVICE])
def test_every_kind_is_filled_as_go_does(kind: kinds.AnyKind) -> None:
    one, other = kind.message(), kind.message()
    rules_of(kind).fill(one)
    presence.fill(other)
    assert one == other
