"""PriorityLevelConfigurations (kube-apiserver 1.36, pkg/apis/flowcontrol/validation)."""

from __future__ import annotations

import math
from typing import Any

from nominee.apiserver.kinds.flowcontrol import bootstrap
from nominee.apiserver.kinds.flowcontrol.shared import check_mandatory, conditions, validate_status
from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.simple_strategy import SimpleStrategy
from nominee.apiserver.printing.cells import NONE, age
from nominee.apiserver.printing.columns import AGE, NAME, Cell, Column, Columns, Row
from nominee.apiserver.validation import field
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import flowcontrol

_QUEUES_MAX = 10_000_000
_ENTROPY_BITS_MAX = 60


def _validate(obj: flowcontrol.PriorityLevelConfiguration) -> list[Cause]:
    """Everything but metadata."""
    spec, name = obj.spec, obj.metadata.name
    errors: list[Cause] = []
    if (name == "exempt") != (spec.type == "Exempt"):
        text = "type must be 'Exempt' if and only if name is 'exempt'"
        errors.append(field.invalid("spec.type", spec.type, text))
    if spec.type == "Exempt":
        if spec.HasField("limited"):
            text = "must be nil if the type is not Limited"
            errors.append(field.forbidden("spec.limited", text))
        errors += _lendable(spec.exempt, "spec.exempt")
    elif spec.type == "Limited":
        if spec.HasField("exempt"):
            errors.append(field.forbidden("spec.exempt", "must be nil if the type is Limited"))
        if not spec.HasField("limited"):
            errors.append(field.required("spec.limited", "must not be empty when type is Limited"))
        else:
            errors += _limited(spec.limited, "spec.limited")
    else:
        errors.append(field.not_supported("spec.type", spec.type, ("Exempt", "Limited")))
    if name != "exempt":
        # Of that one the shares may be changed.
        errors += check_mandatory(obj, bootstrap.mandatory_levels())
    return errors + conditions(obj.status.conditions)


def _lendable(level: Any, path: str) -> list[Cause]:
    errors = []
    if level.nominalConcurrencyShares < 0:
        where = f"{path}.nominalConcurrencyShares"
        errors.append(field.invalid(where, level.nominalConcurrencyShares, "must be a non-negative integer"))
    if not 0 <= level.lendablePercent <= 100:
        text = "must be between 0 and 100, inclusive"
        errors.append(field.invalid(f"{path}.lendablePercent", level.lendablePercent, text))
    return errors


def _limited(level: flowcontrol.LimitedPriorityLevelConfiguration, path: str) -> list[Cause]:
    errors = _lendable(level, path)
    if level.HasField("borrowingLimitPercent") and level.borrowingLimitPercent < 0:
        text = "if specified, must be a non-negative integer"
        errors.append(field.invalid(f"{path}.borrowingLimitPercent", level.borrowingLimitPercent, text))
    response, where = level.limitResponse, f"{path}.limitResponse"
    if response.type == "Reject":
        if response.HasField("queuing"):
            text = "must be nil if limited.limitResponse.type is not Limited"
            errors.append(field.forbidden(f"{where}.queuing", text))
    elif response.type == "Queue":
        if not response.HasField("queuing"):
            text = "must not be empty if limited.limitResponse.type is Limited"
            errors.append(field.required(f"{where}.queuing", text))
        else:
            errors += _queuing(response.queuing, f"{where}.queuing")
    else:
        errors.append(field.not_supported(f"{where}.type", response.type, ("Queue", "Reject")))
    return errors


def _queuing(queuing: flowcontrol.QueuingConfiguration, path: str) -> list[Cause]:
    errors = []
    if queuing.queueLengthLimit <= 0:
        errors.append(field.invalid(f"{path}.queueLengthLimit", queuing.queueLengthLimit, "must be positive"))
    if queuing.queues <= 0:
        errors.append(field.invalid(f"{path}.queues", queuing.queues, "must be positive"))
    elif queuing.queues > _QUEUES_MAX:
        text = f"must not be greater than {_QUEUES_MAX}"
        errors.append(field.invalid(f"{path}.queues", queuing.queues, text))
    size, where = queuing.handSize, f"{path}.handSize"
    if size <= 0:
        errors.append(field.invalid(where, size, "must be positive"))
    elif size > queuing.queues:
        text = f"should not be greater than queues ({queuing.queues})"
        errors.append(field.invalid(where, size, text))
    elif _entropy_bits(queuing.queues, size) > _ENTROPY_BITS_MAX:
        text = (
            f"required entropy bits of deckSize {queuing.queues} and handSize {size} should not be greater"
            f" than {_ENTROPY_BITS_MAX}"
        )
        errors.append(field.invalid(where, size, text))
    return errors


def _entropy_bits(deck: int, size: int) -> int:
    """Of a hash that deals every hand; a hand of more than 15 needs too many anyway."""
    if size > 15:
        return _ENTROPY_BITS_MAX + 1
    return math.ceil(sum(math.log2(deck - dealt) for dealt in range(size)))


def _row(obj: flowcontrol.PriorityLevelConfiguration, now: float) -> Row:
    spec = obj.spec
    shares: Cell = NONE
    queues: list[Cell] = [NONE, NONE, NONE]
    if spec.HasField("limited"):
        shares = spec.limited.nominalConcurrencyShares
        if spec.limited.limitResponse.HasField("queuing"):
            found = spec.limited.limitResponse.queuing
            queues = [found.queues, found.handSize, found.queueLengthLimit]
    return Row([obj.metadata.name, spec.type, shares, *queues, age(obj.metadata, now)])


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
        (
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
        _row,
    ),
)
