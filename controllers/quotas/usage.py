"""Usage of a ResourceQuota's resources in a namespace. Pure.

Source: kube-controller-manager 1.36, resourcequota-controller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from google.protobuf.message import Message

from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.objects import copy_of, metadata_of
from nominee.machinery.api.pb import core
from nominee.machinery.resources import quota
from nominee.machinery.resources import resource_lists as amounts
from nominee.machinery.resources.quantity import Quantity
from nominee.machinery.resources.resource_lists import Amounts


def measured_kinds(resource_quota: core.ResourceQuota) -> list[Kind[Message]]:
    """Return the kinds that a quota limits."""
    names = list(resource_quota.spec.hard)
    countable = (kind for kind in kinds.KINDS if kind.namespaced and kind not in kinds.STORED_AS)
    return [kind for kind in countable if any(quota.is_measured(kind, name) for name in names)]


def usage_of(
    resource_quota: core.ResourceQuota, objects: Mapping[Kind[Message], Iterable[Message]], now: float
) -> Amounts:
    """Return how much of each resource of the quota a namespace's objects use."""
    names = sorted(resource_quota.spec.hard)
    total = {
        name: Quantity.of(0)
        for name in names
        if any(quota.is_measured(kind, name) for kind in measured_kinds(resource_quota))
    }
    for kind, each in objects.items():
        for obj in each:
            if quota.counts(resource_quota, kind, obj):
                own = quota.usage(kind, obj, now)
                total = amounts.add(total, {name: own[name] for name in names if name in own})
    return total


def recount(resource_quota: core.ResourceQuota, total: Amounts) -> core.ResourceQuota | None:
    """Return the quota with its status updated, None where it needs no change."""
    hard = amounts.read(resource_quota.spec.hard)
    if amounts.read(resource_quota.status.hard) == hard and amounts.read(resource_quota.status.used) == total:
        return None
    new = copy_of(resource_quota)
    new.ClearField("status")
    amounts.write(hard, new.status.hard)
    amounts.write(total, new.status.used)
    return new


def is_charged(resource_quota: core.ResourceQuota, obj: Message) -> bool:
    """Report whether an object is newer than the quota, so that admission has charged it.

    An older object must still be counted where its watch shows it later than the quota; upstream does so at
    the next resync. Times are in whole seconds: an object of the same second is counted.
    """
    created = metadata_of(obj).creationTimestamp.seconds
    return created > resource_quota.metadata.creationTimestamp.seconds


def limits_differ(resource_quota: core.ResourceQuota) -> bool:
    """Report whether the status does not have the limits of the spec."""
    return amounts.read(resource_quota.spec.hard) != amounts.read(resource_quota.status.hard)
