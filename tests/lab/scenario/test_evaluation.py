"""Comparisons, properties of objects, and JSON paths as kubectl writes them."""

from __future__ import annotations

import pytest

from nominee.lab.scenario.conditions.event import EventCondition
from nominee.lab.scenario.conditions.object import ObjectCondition
from nominee.lab.scenario.fields import paths
from nominee.lab.scenario.fields.comparison import Comparison, matches
from nominee.lab.scenario.fields.substitution import substituted
from nominee.lab.scenario.steps.processes.stop import Kill
from nominee.machinery.wire.values.scalars import Json

_POD = {
    "kind": "Pod",
    "metadata": {
        "name": "a",
        "namespace": "default",
        "annotations": {"volume.kubernetes.io/selected-node": "node-1", "x-y": "z"},
    },
    "spec": {"nodeName": "node-1", "containers": [{"name": "c"}, {"name": "d"}]},
    "status": {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True", "reason": "Because"}],
    },
}


@pytest.mark.parametrize(
    ("comparison", "values", "holds"),
    [
        (Comparison(equal="2", has_equal=True), [2], True),
        (Comparison(equal=0, has_equal=True), [0.0], True),
        (Comparison(equal=True, has_equal=True), [True], True),
        (Comparison(equal="b", has_equal=True), ["a", "b"], True),
        (Comparison(equal=None, has_equal=True), [], True),
        (Comparison(equal=None, has_equal=True), [""], True),
        (Comparison(equal=None, has_equal=True), ["a"], False),
        (Comparison(unequal="a", has_unequal=True), ["b", "a"], False),
        (Comparison(unequal="a", has_unequal=True), [], True),
        (Comparison(unequal="a", has_unequal=True, present=True), [], False),
        (Comparison(unequal=None, has_unequal=True), ["a"], True),
        (Comparison(contains="ell"), ["hello"], True),
        (Comparison(matches="^h.*o$"), ["hello"], True),
        (Comparison(matches="^x"), ["hello"], False),
        (Comparison(one_of=("a", "b")), ["b"], True),
        (Comparison(one_of=("a", "b")), ["c"], False),
        (Comparison(quantity="1500m"), ["1.5"], True),
        (Comparison(quantity="1500m"), ["1"], False),
        (Comparison(quantity="1500m"), ["no quantity"], False),
        (Comparison(at_least=2), [2], True),
        (Comparison(at_least=2, at_most=3), ["4"], False),
        (Comparison(at_least=2), ["no number"], False),
        (Comparison(present=False), [[]], True),
    ],
)
def test_comparisons(comparison: Comparison, values: list[Json], holds: bool) -> None:
    assert matches(comparison, values) is holds


@pytest.mark.parametrize(
    ("path", "values"),
    [
        (".status.phase", ["Running"]),
        ("{.status.phase}", ["Running"]),
        ("$.status.phase", ["Running"]),
        (".spec.containers[*].name", ["c", "d"]),
        ('.status.conditions[?(@.type=="Ready")].reason', ["Because"]),
        (r".metadata.annotations.volume\.kubernetes\.io/selected-node", ["node-1"]),
        ('.metadata.annotations["volume.kubernetes.io/selected-node"]', ["node-1"]),
        (".metadata.annotations.x-y", ["z"]),
        (".status.nominatedNodeName", []),
    ],
)
def test_paths(path: str, values: list[Json]) -> None:
    assert paths.find(path, _POD) == values


@pytest.mark.parametrize("path", ["status.phase", ".status[", ""])
def test_a_text_that_is_no_path(path: str) -> None:
    with pytest.raises(paths.PathError):
        paths.compiled(path)


@pytest.mark.parametrize(
    ("conditions", "holds", "text"),
    [
        (("Ready=True",), True, "pod default/a: Ready=True/Because"),
        (("Ready=True/Because",), True, "pod default/a: Ready=True/Because"),
        (("Ready=True/Other",), False, "pod default/a: Ready=True/Because"),
        (("Ready=False",), False, "pod default/a: Ready=True/Because"),
        (("!Ready",), False, "pod default/a: Ready=True/Because"),
        (("!PodScheduled",), True, "pod default/a: no condition PodScheduled"),
        (("PodScheduled=True",), False, "pod default/a: no condition PodScheduled"),
    ],
)
def test_conditions_of_an_object(conditions: tuple[str, ...], holds: bool, text: str) -> None:
    observed = ObjectCondition(kind="Pod", name="a", conditions=conditions).evaluated([_POD])
    assert (observed.holds, observed.text) == (holds, text)


def test_counts_of_objects() -> None:
    def holds(count: Comparison | None, *objects: Json) -> bool:
        return ObjectCondition(kind="Pod", count=count).evaluated(objects).holds

    assert holds(None, _POD)
    assert not holds(None)
    assert holds(Comparison(equal=0, has_equal=True))
    assert holds(Comparison(at_most=2), _POD, _POD)
    assert not holds(Comparison(at_most=1), _POD, _POD)


def test_events_are_counted_with_their_repetitions() -> None:
    event = {
        "reason": "FailedScheduling",
        "message": "0/1 nodes are available",
        "involvedObject": {"kind": "Pod", "name": "a", "namespace": "default"},
        "reportingComponent": "default-scheduler",
        "series": {"count": 3},
    }
    condition = EventCondition(
        reason="FailedScheduling",
        kind="Pod",
        name="a",
        component="default-scheduler",
        message=Comparison(contains="0/1"),
        count=Comparison(equal=3, has_equal=True),
    )
    assert condition.evaluated([event]).holds
    assert not EventCondition(reason="Preempted", name="a").evaluated([event]).holds


def test_variables_are_replaced_in_all_texts() -> None:
    condition = ObjectCondition(
        kind="Node", name="${NODE}", json_path={'.x["${NODE}"]': Comparison(one_of=("${NODE}", 3))}
    )
    assert substituted(condition, {"NODE": "n"}) == ObjectCondition(
        kind="Node", name="n", json_path={'.x["n"]': Comparison(one_of=("n", 3))}
    )
    kill = Kill(component="${X}")
    assert substituted(kill, {}) == kill
