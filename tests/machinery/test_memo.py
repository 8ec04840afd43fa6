"""A cached result is what the rule would return, and the cache has a limit."""

from __future__ import annotations

from nominee.machinery.api.pb import core
from nominee.machinery.runtime.memo import BYTES_MAX, ENTRIES_MAX, RESULT_BYTES_MAX, CachedChange, CachedRule


def _spec(image: str) -> core.PodSpec:
    return core.PodSpec(containers=[core.Container(name="c", image=image)])


def test_a_rule_runs_once_for_the_same_bytes() -> None:
    calls: list[str] = []

    def rule(spec: core.PodSpec) -> str:
        calls.append(spec.containers[0].image)
        return spec.containers[0].image.upper()

    cached = CachedRule(rule)
    assert [cached(_spec(image)) for image in ("a", "b", "a", "b")] == ["A", "B", "A", "B"]
    assert calls == ["a", "b"]


def test_a_change_is_made_to_each_message_and_shared_by_none() -> None:
    def rule(spec: core.PodSpec) -> None:
        spec.hostname = f"{spec.containers[0].image}!"

    change = CachedChange(rule)
    first, second = _spec("a"), _spec("a")
    change(first)
    first.hostname = "changed later"
    change(second)
    second.containers[0].image = "changed too"
    third = _spec("a")
    change(third)
    assert (second.hostname, third.hostname, third.containers[0].image) == ("a!", "a!", "a")


def test_the_oldest_result_is_dropped_first() -> None:
    calls = 0

    def rule(spec: core.PodSpec) -> int:
        nonlocal calls
        calls += 1
        return calls

    cached = CachedRule(rule)
    large = _spec("x" * BYTES_MAX)
    assert (cached(large), cached(large)) == (1, 2)
    for number in range(ENTRIES_MAX):
        cached(_spec(str(number)))
    before = calls
    cached(_spec("one too many"))
    cached(_spec("1"))
    assert calls == before + 1
    cached(_spec("0"))
    assert calls == before + 2


def test_results_that_grow_are_not_kept() -> None:
    calls = 0

    def rule(spec: core.PodSpec) -> list[str]:
        nonlocal calls
        calls += 1
        return ["wrong"] * len(spec.imagePullSecrets)

    def longer(spec: core.PodSpec) -> None:
        nonlocal calls
        calls += 1
        spec.hostname = "x" * RESULT_BYTES_MAX

    cached, change = CachedRule(rule), CachedChange(longer)
    many = core.PodSpec(imagePullSecrets=[core.LocalObjectReference()] * 5000)
    assert cached(many) == cached(many)
    assert calls == 2
    for spec in (_spec("a"), _spec("a")):
        change(spec)
    assert calls == 4
