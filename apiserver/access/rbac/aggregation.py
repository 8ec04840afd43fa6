"""Aggregated cluster roles: a ClusterRole's aggregationRule.

Upstream a controller writes their rules (clusterroleaggregation); here the API server does, so that `view`,
`edit` and `admin` work in a cluster without controllers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from nominee.apiserver.objects.requests import Patch, PatchKind
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.selectors import LabelSelector, SelectorError
from nominee.machinery.runtime import logs
from nominee.machinery.wire.codec import to_json

if TYPE_CHECKING:
    from nominee.apiserver.cache.watch_cache import WatchCache
    from nominee.apiserver.objects.requests import RegistryAPI
    from nominee.machinery.runtime.clock import Clock

_log = logs.get()
_AGAIN_SECONDS = 1.0
_ROUNDS_MAX = 8
"""Aggregated roles may be aggregated; `admin` is the third level upstream."""


def aggregate(role: Any, roles: Iterable[Any]) -> list[Any]:
    """Return the rules of the roles that a role's selectors match, by the roles' names, each rule once."""
    found: list[Any] = []
    ordered = sorted(roles, key=lambda each: str(each.metadata.name))
    for selector in role.aggregationRule.clusterRoleSelectors:
        try:
            matches = LabelSelector.from_message(selector).matches
        except SelectorError:
            # It was written past validation: it matches no role.
            continue
        for other in ordered:
            if other.metadata.name == role.metadata.name or not matches(other.metadata.labels):
                continue
            found += [rule for rule in other.rules if rule not in found]
    return found


def settle(roles: Sequence[Any]) -> None:
    """Fill in the rules of all aggregated roles, in place."""
    gathering = [role for role in roles if role.HasField("aggregationRule")]
    for _ in range(_ROUNDS_MAX):
        changed = False
        for role in gathering:
            rules = aggregate(role, roles)
            if rules != list(role.rules):
                del role.rules[:]
                role.rules.extend(rules)
                changed = True
        if not changed:
            return


async def run(registry: RegistryAPI, cache: WatchCache, clock: Clock) -> None:
    """Reconcile the rules of aggregated roles until cancelled."""
    while True:
        try:
            async with cache.watch(kinds.CLUSTER_ROLE) as watcher:
                async for _ in watcher:
                    await _write(registry, [found.message for found in cache.list(kinds.CLUSTER_ROLE)])
        except StatusError as error:
            # The server stops, the watch cache listed again, or a write failed.
            _log.debug("aggregated roles are reconciled again", error=str(error))
        await clock.sleep(_AGAIN_SECONDS)


async def _write(registry: RegistryAPI, roles: Sequence[Any]) -> None:
    for role in roles:
        if not role.HasField("aggregationRule"):
            continue
        rules = aggregate(role, roles)
        if rules == list(role.rules):
            continue
        patch = json.dumps({"rules": [to_json(rule) for rule in rules]}).encode()
        with errors.ignoring(errors.is_not_found):
            await registry.perform(
                Patch(kinds.CLUSTER_ROLE, "", role.metadata.name, "", PatchKind.MERGE, patch)
            )
