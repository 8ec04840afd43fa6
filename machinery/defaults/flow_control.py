"""Defaults of flow schemas and priority levels (kube-apiserver 1.36, apis/flowcontrol/v1). In place."""

from __future__ import annotations

from nominee.machinery.api.pb import flowcontrol
from nominee.machinery.defaults import fields
from nominee.machinery.features.gates import Gates

_PRECEDENCE, _SHARES = 1000, 30
_QUEUES, _HAND_SIZE, _QUEUE_LENGTH = 64, 8, 50


def flow_schema(obj: flowcontrol.FlowSchema, gates: Gates) -> None:
    fields.set_empty(obj.spec, matchingPrecedence=_PRECEDENCE)


def priority_level(obj: flowcontrol.PriorityLevelConfiguration, gates: Gates) -> None:
    """Fill in a PriorityLevelConfiguration."""
    set_shares(obj)
    if obj.spec.HasField("limited"):
        limited = obj.spec.limited
        queuing = limited.limitResponse.queuing
        if limited.limitResponse.HasField("queuing"):
            fields.set_empty(queuing, queues=_QUEUES, handSize=_HAND_SIZE, queueLengthLimit=_QUEUE_LENGTH)


def set_shares(obj: flowcontrol.PriorityLevelConfiguration) -> None:
    """Fill in a level's shares, and how much of them it lends."""
    if obj.spec.type == "Exempt":
        _shares(obj.spec.exempt, 0)
    if obj.spec.HasField("limited"):
        _shares(obj.spec.limited, _SHARES)


def _shares(
    level: flowcontrol.ExemptPriorityLevelConfiguration | flowcontrol.LimitedPriorityLevelConfiguration,
    shares: int,
) -> None:
    fields.set_absent(level, nominalConcurrencyShares=shares, lendablePercent=0)
