"""Generated scenarios: the same for a seed, valid, and about everything that the table names."""

from __future__ import annotations

import random

import yaml

from nominee.lab.chaos.generated.generating import generate
from nominee.lab.chaos.generated.search import text_of
from nominee.lab.chaos.generated.shrinking import copy_of
from nominee.lab.chaos.generated.subjects import SUBJECTS, Draw
from nominee.lab.scenario.format.reading import read_text

SEEDS = range(1, 41)


def test_a_seed_gives_one_scenario() -> None:
    assert generate(7) == generate(7)
    assert generate(7)["spec"]["steps"] != generate(8)["spec"]["steps"]


def test_every_scenario_is_valid_and_can_be_simulated() -> None:
    for seed in SEEDS:
        (scenario,) = read_text(text_of(copy_of(generate(seed))), f"generated-{seed}.yaml")
        assert scenario.steps_may_fail
        assert not any(step.is_check for step in scenario.steps)
        assert scenario.cluster.not_simulated == ""


def test_the_text_has_no_aliases_and_says_the_same() -> None:
    document = copy_of(generate(3))
    assert "&id" not in text_of(document)
    assert yaml.safe_load(text_of(document)) == document


def test_every_subject_has_steps_that_differ_by_seed() -> None:
    for subject in SUBJECTS:
        drawn = {str(subject.draw(Draw(random.Random(seed), ["node-0", "node-1"]))) for seed in SEEDS}
        assert len(drawn) > 3, subject.draw.__name__
