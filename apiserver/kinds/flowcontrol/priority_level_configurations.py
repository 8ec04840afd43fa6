"""PriorityLevelConfigurations (kube-apiserver 1.36, pkg/apis/flowcontrol/validation)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from nominee.apiserver.kinds.flowcontrol import bootstrap
from nominee.apiserver.kinds.flowcontrol.shared import check_mandatory, conditions, validate_status
from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.simple_strategy import SimpleStrategy
from nominee.apiserver.printing.cells import NONE
from nominee.apiserver.printing.columns import AGE, NAME, Cell, Cells, Column, Columns
from nominee.apiserver.validation import field
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import flowcontrol

_QUEUES_MAX = 10_000_000
_ENTROPY_BITS_MAX = 60


def _validate(obj: flowcontrol.PriorityLevelConfiguration) -> Iterator[Cause]:
    """Everything but metadata."""
    spec, name = obj.spec, obj.metadata.name
    if (name == "exempt") != (spec.type == "Exempt"):
        yield field.invalid("spec.type", spec.type, "type must be 'Exempt' if and only if name is 'exempt'")
    if spec.type == "Exempt":
        if spec.HasField("limited"):
            yield field.forbidden("spec.limited", "must be nil if the type is not Limited")
        yield from _lendable(spec.exempt, "spec.exempt")
    elif spec.type == "Limited":
        if spec.HasField("exempt"):
            yield field.forbidden("spec.exempt", "must be nil if the type is Limited")
        if not spec.HasField("limited"):
            yield field.required("spec.limited", "must not be empty when type is Limited")
        else:
            yield from _limited(spec.limited, "spec.limited")
    else:
        yield field.not_supported("spec.type", spec.type, ("Exempt", "Limited"))
    if name != "exempt":
        # Of that one the shares may be changed.
        yield from check_mandatory(obj, bootstrap.mandatory_levels())
    yield from conditions(obj.status.conditions)


def _lendable(level: Any, path: str) -> Iterator[Cause]:
    if level.nominalConcurrencyShares < 0:
        where = f"{path}.nominalConcurrencyShares"
        yield field.invalid(where, level.nominalConcurrencyShares, "must be a non-negative integer")
    if not 0 <= level.lendablePercent <= 100:
        text = "must be between 0 and 100, inclusive"
        yield field.invalid(f"{path}.lendablePercent", level.lendablePercent, text)


def _limited(level: flowcontrol.LimitedPriorityLevelConfiguration, path: str) -> Iterator[Cause]:
    yield from _lendable(level, path)
    if level.HasField("borrowingLimitPercent") and level.borrowingLimitPercent < 0:
        text = "if specified, must be a non-negative integer"
        yield field.invalid(f"{path}.borrowingLimitPercent", level.borrowingLimitPercent, text)
    response, where = level.limitResponse, f"{path}.limitResponse"
    if response.type == "Reject":
        if response.HasField("queuing"):
            text = "must be nil if limited.limitResponse.type is not Limited"
            yield field.forbidden(f"{where}.queuing", text)
    elif response.type == "Queue":
        if not response.HasField("queuing"):
            text = "must not be empty if limited.limitResponse.type is Limited"
            yield field.required(f"{where}.queuing", text)
        else:
            yield from _queuing(response.queuing, f"{where}.queuing")
    else:
        yield field.not_supported(f"{where}.type", response.type, ("Queue", "Reject"))


def _queuing(queuing: flowcontrol.QueuingConfiguration, path: str) -> Iterator[Cause]:
    if queuing.queueLengthLimit <= 0:
        yield field.invalid(f"{path}.queueLengthLimit", queuing.queueLengthLimit, "must be positive")
    if queuing.queues <= 0:
        yield field.invalid(f"{path}.queues", queuing.queues, "must be positive")
    elif queuing.queues > _QUEUES_MAX:
        yield field.invalid(f"{path}.queues", queuing.queues, f"must not be greater than {_QUEUES_MAX}")
    size, where = queuing.handSize, f"{path}.handSize"
    if size <= 0:
        yield field.invalid(where, size, "must be positive")
    elif size > queuing.queues:
        yield field.invalid(where, size, f"should not be greater than queues ({queuing.queues})")
    elif _entropy_bits(queuing.queues, size) > _ENTROPY_BITS_MAX:
        text = (
            f"required entropy bits of deckSize {queuing.queues} and handSize {size} should not be greater"
            f" than {_ENTROPY_BITS_MAX}"
        )
        yield field.invalid(where, size, text)


def _entropy_bits(deck: int, size: int) -> int:
    """Of a hash that deals every hand; a hand of more than 15 needs too many anyway."""
    if size > 15:
        return _ENTROPY_BITS_MAX + 1
    return math.ceil(sum(math.log2(deck - dealt) for dealt in range(size)))


def _row(obj: flowcontrol.PriorityLevelConfiguration, now: float) -> Cells:
    spec = obj.spec
    shares: Cell = NONE
    queues: list[Cell] = [NONE, NONE, NONE]
    if spec.HasField("limited"):
        shares = spec.limited.nominalConcurrencyShares
        if spec.limited.limitResponse.HasField("queuing"):
            found = spec.limited.limitResponse.queuing
            queues = [found.queues, found.handSize, found.queueLengthLimit]
    return [spec.type, shares, *queues]


RULES = KindRules(
    kind=kinds.PRIORITY_LEVEL_CONFIGURATION,
    strategy=SimpleStrategy(
        kinds.PRIORITY_LEVEL_CONFIGURATION,
        _validate,
        status=validate_status,
        status_resets_metadata=True,
        counts_generation=True,
    ),
    columns=Columns(
        _row,
        NAME,
        Column("Type", "prioritylevelconfigurationspec-flowcontrol-v1#type"),
        Column(
            "NominalConcurrencyShares",
            "limitedprioritylevelconfiguration-flowcontrol-v1#nominalConcurrencyShares",
        ),
        Column("Queues", "queuingconfiguration-flowcontrol-v1#queues"),
        Column("HandSize", "queuingconfiguration-flowcontrol-v1#handSize"),
        Column("QueueLengthLimit", "queuingconfiguration-flowcontrol-v1#queueLengthLimit"),
        AGE,
    ),
)
