"""The smallest scenario and case that still report the same: delta debugging (Zeller, ddmin). No I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.cases.perturbations import AtFailpoint, OfCall, Perturbation
from nominee.lab.chaos.generated.generating import Document, copy_of

T = TypeVar("T")
Part = tuple[int, int]
"""A step of the document and one of its manifests, 0 if it has none."""
Check = Callable[[Document, Case], Case | None]
"""Returns the case, or a smaller one, if the scenario reports the same with it; else None."""
_OPTIONS: Final = ("components", "featureGates", "kubelets")
"""Fields of the cluster that a scenario may do without."""


@dataclass(frozen=True, slots=True)
class Found:
    """A scenario and the case with which it reports something."""

    document: Document
    case: Case


def smallest(items: Sequence[T], holds: Callable[[Sequence[T]], bool]) -> Sequence[T]:
    """Return items of which none, and no run of them that was tried, can be left out, so that it holds."""
    size = (len(items) + 1) // 2
    while size:
        start, before = 0, len(items)
        while start < len(items):
            rest = [*items[:start], *items[start + size :]]
            if holds(rest):
                items = rest
            else:
                start += size
        if size == 1 and len(items) == before:
            break
        size = max(1, size // 2)
    return items


def shrink(found: Found, check: Check, runs_max: int) -> Found:
    """Leave out steps, manifests and options without an effect, and return the rest.

    The check is made `runs_max` times at most.
    """
    runs = 0
    original = found

    def reports(document: Document, case: Case) -> bool:
        nonlocal runs, found
        runs += 1
        smaller = check(document, case) if runs <= runs_max else None
        if smaller is not None:
            found = Found(document, smaller)
        return smaller is not None

    def of_parts(kept: Sequence[Part]) -> bool:
        # A case that has become smaller stays so; its steps are numbered as in the whole document.
        names = {_name(each) for each in found.case.perturbations}
        wanted = [each for each in original.case.perturbations if _name(each) in names]
        return bool(kept) and reports(with_parts(original.document, kept), renumber(wanted, original, kept))

    smallest(parts_of(original.document), of_parts)
    for name in _OPTIONS:
        document = copy_of(found.document)
        if document["spec"]["cluster"].pop(name, None) is not None:
            reports(document, found.case)
    return found


def parts_of(document: Document) -> list[Part]:
    """Return the parts of all steps."""
    return [
        (number, part)
        for number, step in enumerate(document["spec"]["steps"])
        for part in range(len(step["apply"]) if "apply" in step else 1)
    ]


def with_parts(document: Document, kept: Sequence[Part]) -> Document:
    """Return the document with these parts alone."""
    changed = copy_of(document)
    steps = []
    for number, step in enumerate(changed["spec"]["steps"]):
        parts = [part for of, part in kept if of == number]
        if "apply" in step:
            step["apply"] = [step["apply"][part] for part in parts]
        if parts:
            steps.append(step)
    changed["spec"]["steps"] = steps
    if "${" not in str(steps):
        changed["spec"].pop("variants", None)
    return changed


def renumber(case: Sequence[Perturbation], original: Found, kept: Sequence[Part]) -> Case:
    """Return a case of the whole document for one with these parts: from the same step on, or the next."""
    before = _origins(original.document)
    after = [origin for origin in before if any(of == origin for of, _ in kept)]
    found: list[Perturbation] = []
    for each in case:
        if isinstance(each, AtFailpoint | OfCall):
            found.append(each)
            continue
        origin = before[min(each.step, len(before)) - 1]
        later = [number for number, other in enumerate(after, start=1) if other >= origin]
        found.append(replace(each, step=later[0] if later else len(after)))
    return Case.of(*found)


def _origins(document: Document) -> list[int]:
    """Return for each step that is played its index in the document: one has a copy for each variant."""
    spec = document["spec"]
    return [
        index
        for index, step in enumerate(spec["steps"])
        for _ in range(len(spec.get("variants", ())) if "${" in str(step) else 1)
    ]


def _name(each: Perturbation) -> str:
    """Return the perturbation without the number of its step."""
    return str(each) if isinstance(each, AtFailpoint | OfCall) else str(each).partition("@")[0]
