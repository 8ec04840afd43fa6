"""LimitRanges (kube-apiserver 1.36, ValidateLimitRange; registry/core/limitrange)."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.simple_strategy import SimpleStrategy
from nominee.apiserver.printing.columns import NAME_AND_CREATION
from nominee.apiserver.validation import field, names
from nominee.apiserver.validation.values import quantities
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import core
from nominee.machinery.resources.quantity import Quantity

_TYPES = frozenset({"Pod", "Container", "PersistentVolumeClaim"})
_PARTS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")


def _validate(obj: core.LimitRange) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, limit in enumerate(obj.spec.limits):
        path = f"spec.limits[{index}]"
        yield from _type(f"{path}.type", limit.type)
        yield from field.unique(f"{path}.type", limit.type, seen)
        yield from _item(path, limit)


def _type(path: str, name: str) -> list[Cause]:
    problems = names.qualified_name(name)
    if not problems and "/" not in name and name not in _TYPES:
        problems = ("must be a standard limit type or fully qualified",)
    return field.problems(path, name, problems)


def _item(path: str, limit: core.LimitRangeItem) -> Iterator[Cause]:
    amounts: dict[str, dict[str, Quantity]] = {}
    for part in _PARTS:
        found = getattr(limit, part)
        if limit.type == "Pod" and part in ("default", "defaultRequest"):
            if found:
                yield field.forbidden(f"{path}.{part}", "may not be specified when `type` is 'Pod'")
            amounts[part] = {}
            continue
        check = (
            quantities.container_resource_name
            if limit.type in ("Pod", "Container")
            else quantities.standard_resource_name
        )
        for name in sorted(found):
            yield from check(f"{path}.{part}[{name}]", name)
        amounts[part] = {name: Quantity.parse(found[name].string) for name in found}
    if limit.type == "PersistentVolumeClaim" and "storage" not in {**amounts["min"], **amounts["max"]}:
        problem = "either minimum or maximum storage value is required, but neither was provided"
        yield field.required(f"{path}.limits", problem)
    for name in sorted(set().union(*amounts.values())):
        yield from _compared(path, name, {part: found.get(name) for part, found in amounts.items()})


def _compared(path: str, name: str, found: dict[str, Quantity | None]) -> list[Cause]:
    """Check that min <= defaultRequest <= default <= max for a resource, and the ratio of the bounds."""
    errors: list[Cause] = []
    least, most = found["min"], found["max"]
    given, asked, ratio = found["default"], found["defaultRequest"], found["maxLimitRequestRatio"]

    def wrong(part: str, value: Quantity, problem: str) -> None:
        errors.append(field.invalid(f"{path}.{part}[{name}]", str(value), problem))

    if least is not None and most is not None and least > most:
        wrong("min", least, f"min value {least} is greater than max value {most}")
    if asked is not None:
        if least is not None and least > asked:
            wrong("defaultRequest", asked, f"min value {least} is greater than default request value {asked}")
        if most is not None and asked > most:
            wrong("defaultRequest", asked, f"default request value {asked} is greater than max value {most}")
        if given is not None and asked > given:
            problem = f"default request value {asked} is greater than default limit value {given}"
            wrong("defaultRequest", asked, problem)
    if given is not None:
        if least is not None and least > given:
            wrong("default", least, f"min value {least} is greater than default value {given}")
        if most is not None and given > most:
            wrong("default", most, f"default value {given} is greater than max value {most}")
    if ratio is not None:
        if ratio < Quantity.parse("1"):
            wrong("maxLimitRequestRatio", ratio, f"ratio {ratio} is less than 1")
        if least is not None and most is not None and least.sign:
            bound = most.milli_value() / least.milli_value()
            if ratio.milli_value() / 1000 > bound:
                wrong("maxLimitRequestRatio", ratio, f"ratio {ratio} is greater than max/min = {bound:f}")
    unequal = given is not None and asked is not None and given != asked
    if unequal and not quantities.may_overcommit(name) and asked is not None:
        wrong(
            "defaultRequest",
            asked,
            f"default value {given} must equal to defaultRequest value {asked} in {name}",
        )
    return errors


RULES = KindRules(
    kind=kinds.LIMIT_RANGE,
    strategy=SimpleStrategy(kinds.LIMIT_RANGE, _validate),
    columns=NAME_AND_CREATION,
    read_your_write=True,
    created_by_update=True,
)
