"""Annotations of kube-scheduler-simulator: their JSON, their history and its limit."""

from __future__ import annotations

import json

from nominee.scheduler.simulator_results import (
    ANNOTATIONS_BYTES_MAX,
    HISTORY,
    PREFIX,
    Results,
    go_json,
    with_history,
)


def size(annotations: dict[str, str]) -> int:
    return sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())


def test_every_annotation_is_there_even_if_it_is_empty() -> None:
    found = Results().annotations()
    assert found.pop(f"{PREFIX}selected-node") == ""
    assert set(found.values()) == {"{}"}
    assert len(found) == 12


def test_json_is_go_s() -> None:
    assert (
        go_json({"b": ["é"], "a": {"n<1>": "x & y"}}) == '{"a":{"n\\u003c1\\u003e":"x \\u0026 y"},"b":["é"]}'
    )


def test_history_has_every_attempt_the_newest_last() -> None:
    first = with_history({"k": "1"}, {"else": "x"})
    second = with_history({"k": "2"}, {**first, "else": "x"})
    assert json.loads(second[HISTORY]) == [{"k": "1"}, {"k": "2"}]
    assert second["k"] == "2"
    assert json.loads(with_history({"k": "3"}, {HISTORY: "no json"})[HISTORY]) == [{"k": "3"}]


def test_the_oldest_attempts_go_when_there_is_too_much() -> None:
    annotations: dict[str, str] = {"else": "x" * 1000}
    for number in range(12):
        new = with_history({f"{PREFIX}bind-result": str(number % 10) * 30_000}, annotations)
        assert size({**annotations, **new}) <= ANNOTATIONS_BYTES_MAX
        annotations.update(new)
    history = json.loads(annotations[HISTORY])
    # The newest is there twice, for itself and in the history, within 256 KiB.
    assert [attempt[f"{PREFIX}bind-result"][0] for attempt in history] == ["5", "6", "7", "8", "9", "0", "1"]


def test_an_attempt_that_is_too_large_by_itself_loses_its_largest_parts() -> None:
    nodes = {f"node-{number}": {"NodeResourcesFit": "100"} for number in range(2000)}
    results = Results(filter=nodes, score=nodes, finalscore=nodes, selected_node="node-1")
    found = with_history(results.annotations(), {})
    assert size(found) <= ANNOTATIONS_BYTES_MAX
    assert found[f"{PREFIX}score-result"] == "{}"
    assert found[f"{PREFIX}filter-result"] != "{}"
    assert found[f"{PREFIX}selected-node"] == "node-1"
