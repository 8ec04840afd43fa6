"""Conditions of `Cluster.wait` on objects that are given."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from nominee.machinery.api import kinds
from nominee.machinery.wire.values.scalars import Json
from nominee.testing.conditions import condition_on

POD = {
    "kind": "Pod",
    "metadata": {"name": "a", "namespace": "team", "labels": {"app": "web"}},
    "spec": {"nodeName": "node-0", "containers": [{"name": "c"}]},
    "status": {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "False", "reason": "Waiting", "message": "not yet"}],
    },
}


@pytest.mark.parametrize(
    ("condition", "document", "expected"),
    [
        ("status.phase == 'Running'", POD, (True, "status.phase = Running")),
        ("object.status.phase == 'Failed'", POD, (False, "status.phase = Running")),
        ("status.nominatedNodeName == 'n'", POD, (False, "status.nominatedNodeName = unset")),
        ("has(status.nominatedNodeName)", POD, (False, "status.nominatedNodeName = unset")),
        ("size(spec.containers) == 1", POD, (True, 'spec.containers = [{"name": "c"}]')),
        ("metadata.labels['app'] == 'web' && spec.nodeName.startsWith('node')", POD, (True, None)),
        ("status.conditions.exists(c, c.type == 'Ready' && c.status == 'False')", POD, (True, None)),
        ("metadata.labels['zone'] == 'a'", {"metadata": {}}, (False, "metadata.labels = unset")),
        ("'a' in object.nothing", POD, (False, "no such key: nothing")),
        ("status.phase == 'Running'", None, (False, "there is no such object")),
        ({"condition": "Ready=False"}, POD, (True, None)),
        ({"condition": "Ready=True"}, POD, (False, "pod team/a: Ready=False/Waiting (not yet)")),
        ({"jsonPath": {".status.phase": {"in": ["Failed", "Running"]}}}, POD, (True, None)),
        ({"exists": False}, POD, (False, "1 exist")),
        ({"exists": False}, None, (True, None)),
        ({"exists": True}, None, (False, "there is no such object")),
    ],
)
def test_a_condition(
    condition: str | Mapping[str, Json],
    document: Mapping[str, Json] | None,
    expected: tuple[bool, str | None],
) -> None:
    holds, observed = condition_on(condition, kinds.POD, "a", "team").evaluate(document)
    assert holds is expected[0]
    if expected[1] is not None:
        assert observed == expected[1]


@pytest.mark.parametrize(
    ("condition", "problem"),
    [
        (
            "status.phase = 'Running'",
            "'status.phase = 'Running'' is no condition: ERROR: <input>:1:14: Syntax",
        ),
        ("state.phase == ''", "undeclared reference to 'state.phase'"),
        ({"conditon": "Ready=True"}, "conditon: unknown field; did you mean condition"),
        ({"condition": "Ready"}, "'Ready' is not TYPE=STATUS"),
        ({"exists": True, "count": 1}, "give exists or count, not both"),
    ],
)
def test_a_wrong_condition(condition: str | Mapping[str, Json], problem: str) -> None:
    with pytest.raises(ValueError, match="is no condition") as raised:
        condition_on(condition, kinds.POD, "a", "team")
    assert problem in str(raised.value).replace('"', "'")


def test_a_value_that_is_not_true_or_false() -> None:
    with pytest.raises(ValueError, match=r"its value is Running"):
        condition_on("status.phase", kinds.POD, "a", "team").evaluate(POD)


def test_the_text_of_a_condition() -> None:
    assert str(condition_on("status.phase == ''", kinds.POD, "a", "team")) == "status.phase == ''"
    found = condition_on({"condition": "Ready=True"}, kinds.NODE, "n", "")
    assert str(found) == "nodes n has Ready=True"
