"""ResourceQuota: a namespace's usage must not exceed its quotas (kube-apiserver 1.36).

The status that the controller computes is compared; an admitted write is charged to it at once. A quota
without a status limits nothing yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from weakref import WeakValueDictionary

import anyio

from nominee.apiserver.admission.interface import AdmissionRequest, Lookup, Operation, Plugin
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.machinery.api.kinds import PERSISTENT_VOLUME_CLAIM, POD, RESOURCE_QUOTA, SERVICE, AnyKind
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import core
from nominee.machinery.resources import quota
from nominee.machinery.resources import resource_lists as amounts
from nominee.machinery.resources.quantity import Quantity
from nominee.machinery.resources.resource_lists import Amounts
from nominee.machinery.runtime.clock import Clock

_UPDATES = frozenset(
    {
        (POD, ""),
        (POD, "resize"),
        (SERVICE, ""),
        (PERSISTENT_VOLUME_CLAIM, ""),
        (PERSISTENT_VOLUME_CLAIM, "status"),
    }
)
"""Kinds and subresources whose updates may raise an object's usage, or move it into another quota."""
_MOVES = frozenset({(POD, ""), (PERSISTENT_VOLUME_CLAIM, "status")})
"""Of these, those whose updates are checked only when they change the usage that quotas count."""


class ResourceQuota(Plugin):
    """Charges writes to the namespace's quotas, and refuses those that exceed one."""

    name = "ResourceQuota"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # Two pods that are charged at once would write the same status: when the answer to one of the writes
        # is lost, what is stored does not show whose it is. Source: quotaEvaluator, which takes one namespace
        # at a time (admission/plugin/resourcequota/controller.go).
        self._charging: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()

    def handles(self, kind: AnyKind, operation: Operation, subresource: str) -> bool:
        if not kind.namespaced or operation == "DELETE":
            return False
        if operation == "CREATE":
            return not subresource
        return (kind, subresource) in _UPDATES

    async def validate(self, request: AdmissionRequest, lookup: Lookup) -> None:
        found = lookup.listed(RESOURCE_QUOTA, request.namespace)
        if not found:
            return
        now = self._clock.now()
        if (
            request.operation == "UPDATE"
            and (request.kind, request.subresource) in _MOVES
            and not quota.may_recount(request.kind, request.old, request.obj, now)
        ):
            return
        bounding = [each.message for each in found if _bounds(request, each.message)]
        if not bounding:
            return
        charges = [(bound.metadata.name, used) for bound, used in _charges(request, bounding, now) if used]
        async with self._charging.setdefault(request.namespace, anyio.Lock()):
            if len(charges) > 1:
                # A write that one quota refuses is charged to no other one.
                for name, used in charges:
                    await self._check(request, lookup, name, used)
            for name, used in charges:
                await self._charge(request, lookup, name, used)

    async def _check(self, request: AdmissionRequest, lookup: Lookup, name: str, used: Amounts) -> None:
        found = await lookup.find(RESOURCE_QUOTA, request.namespace, name)
        if found is not None:
            charge(request, found.message, used)

    async def _charge(self, request: AdmissionRequest, lookup: Lookup, name: str, used: Amounts) -> None:
        if request.dry_run:
            await self._check(request, lookup, name, used)
            return

        async def mutate(current: CachedObject) -> core.ResourceQuota:
            return charge(request, current.message, used)

        await lookup.change(RESOURCE_QUOTA, request.namespace, name, mutate)


def _bounds(request: AdmissionRequest, found: core.ResourceQuota) -> bool:
    """Report whether a quota applies to the object.

    Raises: StatusError 403 when the object's usage cannot be computed.
    """
    hard = found.status.hard
    names = sorted(name for name in hard if quota.is_measured(request.kind, name))
    if not names or not quota.counts(found, request.kind, request.obj):
        return False
    missing = quota.missing_resources(request.obj, names) if request.kind is POD else ""
    if missing:
        raise request.forbidden(f"failed quota: {found.metadata.name}: must specify {missing}")
    if any(name not in found.status.used for name in names):
        problem = f"status unknown for quota: {found.metadata.name}, resources: {','.join(names)}"
        raise request.forbidden(problem)
    return True


def _charges(
    request: AdmissionRequest, bounding: Sequence[core.ResourceQuota], now: float
) -> list[tuple[core.ResourceQuota, Amounts]]:
    """Return the usage that the write adds to each quota.

    For an update that is the increase; a quota whose scopes did not match the old object is charged the whole
    usage.

    Raises: StatusError 403 for a negative usage.
    """
    used = quota.usage(request.kind, request.obj, now)
    negative = sorted(name for name, quantity in used.items() if quantity.sign < 0)
    if negative:
        raise request.forbidden(f"quota usage is negative for resource(s): {','.join(negative)}")
    used = _positive(used)
    if request.operation != "UPDATE":
        return [(bound, used) for bound in bounding]
    increase = _positive(amounts.subtract(used, quota.usage(request.kind, request.old, now)))
    return [
        (bound, increase if quota.counts(bound, request.kind, request.old) else used) for bound in bounding
    ]


def _positive(found: Amounts) -> Amounts:
    return {name: quantity for name, quantity in found.items() if quantity}


def charge(request: AdmissionRequest, found: core.ResourceQuota, used: Amounts) -> core.ResourceQuota:
    """Return the quota with `used` added to its status.

    Raises: StatusError 403 when that exceeds a hard limit.
    """
    hard, before = amounts.read(found.status.hard), amounts.read(found.status.used)
    asked = {name: used[name] for name in sorted(used) if name in hard}
    after = amounts.add(before, asked)
    exceeded = [name for name in asked if after[name] > hard[name]]
    if exceeded:
        raise request.forbidden(
            f"exceeded quota: {found.metadata.name}, requested: {_text(asked, exceeded)},"
            f" used: {_text(before, exceeded)}, limited: {_text(hard, exceeded)}"
        )
    new = copy_of(found)
    for name in asked:
        new.status.used[name].string = str(after[name])
    return new


def _text(found: Mapping[str, Quantity], names: Iterable[str]) -> str:
    return ",".join(f"{name}={found[name]}" for name in names if name in found)
