"""Generated scenarios: the same for a seed, valid, and about everything that the file names."""

from __future__ import annotations

import random

import pytest
import yaml

from nominee.lab.chaos.generated.generating import draw, generate
from nominee.lab.chaos.generated.search import read_source, text_of
from nominee.lab.scenario.format.reading import read_text
from nominee.machinery.wire.values.scalars import Json

SEEDS = range(1, 21)
SOURCE = read_source()


def test_a_seed_gives_one_scenario() -> None:
    assert generate(7, SOURCE) == generate(7, SOURCE)
    assert generate(7, SOURCE)["spec"]["steps"] != generate(8, SOURCE)["spec"]["steps"]


def test_every_scenario_is_valid_and_can_be_simulated() -> None:
    for seed in SEEDS:
        (scenario,) = read_text(text_of(generate(seed, SOURCE)), f"generated-{seed}.yaml")
        assert scenario.steps_may_fail
        assert not any(step.is_check for step in scenario.steps)
        assert scenario.cluster.not_simulated == ""


def test_the_text_has_no_aliases_and_says_the_same() -> None:
    document = generate(3, SOURCE)
    assert "&id" not in text_of(document)
    assert yaml.safe_load(text_of(document)) == document


def test_the_steps_of_every_subject_and_every_change_are_drawn() -> None:
    texts = [str(generate(seed, SOURCE)["spec"]["steps"]) for seed in range(300)]
    for subject in SOURCE["subjects"]:
        for change in subject["changes"]:
            fixed = [step for step in change if "oneOf" not in str(step)]
            assert any(all(str(step) in text for step in fixed) for text in texts), change


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"oneOf": [1]}, 1),
        ({"a": {"oneOf": [{"oneOf": ["x"]}]}}, {"a": "x"}),
        ({"a": 1, "oneOf": [{"b": 2}]}, {"a": 1, "b": 2}),
        ([{"oneOf": [{}]}, "text"], [{}, "text"]),
    ],
)
def test_alternatives(value: Json, expected: Json) -> None:
    assert draw(value, random.Random(1)) == expected


def test_each_use_of_an_alternative_is_drawn() -> None:
    one = {"oneOf": [0, 1]}
    assert set(draw([one] * 50, random.Random(1))) == {0, 1}
