"""What a namespace uses of a ResourceQuota's resources. Pure.

Source: kube-controller-manager 1.36, resourcequota-controller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from machinery.api import kinds
from machinery.api.kinds import Kind
from machinery.api.pb import core
from machinery.resources import quota
from machinery.resources import resource_lists as amounts
from machinery.resources.quantity import Quantity
from machinery.resources.resource_lists import Amounts


def measured_kinds(found: core.ResourceQuota) -> list[Kind[Any]]:
    """Those that a quota bounds."""
    names = list(found.spec.hard)
    countable = (kind for kind in kinds.KINDS if kind.namespaced and kind not in kinds.STORED_AS)
    return [kind for kind in countable if any(quota.is_measured(kind, name) for name in names)]


def used(found: core.ResourceQuota, objects: Mapping[Kind[Any], Iterable[Any]]) -> Amounts:
    """What the namespace uses of what the quota bounds; zero where nothing does."""
    names = sorted(found.spec.hard)
    total = {
        name: Quantity.of(0)
        for name in names
        if any(quota.is_measured(kind, name) for kind in measured_kinds(found))
    }
    for kind, each in objects.items():
        for obj in each:
            if quota.counts(found, kind, obj):
                own = quota.usage(kind, obj)
                total = amounts.add(total, {name: own[name] for name in names if name in own})
    return total


def recounted(found: core.ResourceQuota, total: Amounts) -> core.ResourceQuota | None:
    """The quota with its status right, or None where it is."""
    hard = amounts.read(found.spec.hard)
    if amounts.read(found.status.hard) == hard and amounts.read(found.status.used) == total:
        return None
    new = core.ResourceQuota()
    new.CopyFrom(found)
    new.ClearField("status")
    amounts.write(hard, new.status.hard)
    amounts.write(total, new.status.used)
    return new


def is_charged(found: core.ResourceQuota, obj: Any) -> bool:
    """Whether an object came after the quota, so that admission has charged it.

    One that was there before is yet to be counted where the watch of its kind brings it later than the quota;
    upstream does so at the next resync. Times are in whole seconds: in doubt it is counted.
    """
    return bool(obj.metadata.creationTimestamp.seconds > found.metadata.creationTimestamp.seconds)


def bounds_differ(found: core.ResourceQuota) -> bool:
    return amounts.read(found.spec.hard) != amounts.read(found.status.hard)
