"""What is remembered of messages is what would be found out anew."""

from __future__ import annotations

from machinery.api.pb import core
from machinery.runtime.memo import BYTES_MAX, ENTRIES_MAX, MADE_BYTES_MAX, Changes, Verdicts


def _spec(image: str) -> core.PodSpec:
    return core.PodSpec(containers=[core.Container(name="c", image=image)])


def test_a_rule_is_asked_once_of_the_same_bytes() -> None:
    asked: list[str] = []

    def rule(spec: core.PodSpec) -> str:
        asked.append(spec.containers[0].image)
        return spec.containers[0].image.upper()

    verdicts = Verdicts(rule)
    assert [verdicts(_spec(image)) for image in ("a", "b", "a", "b")] == ["A", "B", "A", "B"]
    assert asked == ["a", "b"]


def test_a_change_is_made_to_each_message_and_shared_by_none() -> None:
    def rule(spec: core.PodSpec) -> None:
        spec.hostname = f"{spec.containers[0].image}!"

    changes = Changes(rule)
    first, second = _spec("a"), _spec("a")
    changes(first)
    first.hostname = "somebody's own"
    changes(second)
    second.containers[0].image = "also its own"
    third = _spec("a")
    changes(third)
    assert (second.hostname, third.hostname, third.containers[0].image) == ("a!", "a!", "a")


def test_memory_has_a_limit() -> None:
    asked = 0

    def rule(spec: core.PodSpec) -> int:
        nonlocal asked
        asked += 1
        return asked

    verdicts = Verdicts(rule)
    large = _spec("x" * BYTES_MAX)
    assert (verdicts(large), verdicts(large)) == (1, 2)
    for number in range(ENTRIES_MAX):
        verdicts(_spec(str(number)))
    before = asked
    verdicts(_spec("one too many"))
    verdicts(_spec("0"))
    assert asked == before + 2


def test_results_that_grow_are_not_kept() -> None:
    asked = 0

    def rule(spec: core.PodSpec) -> list[str]:
        nonlocal asked
        asked += 1
        return ["wrong"] * len(spec.imagePullSecrets)

    def longer(spec: core.PodSpec) -> None:
        spec.hostname = "x" * MADE_BYTES_MAX

    verdicts, changes = Verdicts(rule), Changes(longer)
    many = core.PodSpec(imagePullSecrets=[core.LocalObjectReference()] * 5000)
    assert verdicts(many) == verdicts(many)
    assert asked == 2
    changes(many)
    assert not changes._known
