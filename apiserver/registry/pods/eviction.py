"""Eviction of a pod: a deletion that its PodDisruptionBudget must allow.

Two or three writes: the budget counts the disruption, the pod gets its DisruptionTarget condition, and then
it is deleted. Conflicts are retried 20 times, half a second apart (`EvictionRetry`). Each write has the time
at which it is decided: that of the request may be the time of the condition's former status.

Source: kube-apiserver 1.36, EvictionREST.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from nominee.apiserver.kinds.strategy import Environment, Strategy
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.registry.deletions.deletion import Deletion, check_preconditions
from nominee.apiserver.registry.pods import budget
from nominee.apiserver.registry.store import Store
from nominee.apiserver.validation import field
from nominee.machinery.api import errors
from nominee.machinery.api.errors import GroupKind, StatusError
from nominee.machinery.api.kinds import POD, POD_DISRUPTION_BUDGET
from nominee.machinery.api.objects import condition_is, copy_of, set_condition
from nominee.machinery.api.pb import core, meta, policy
from nominee.machinery.api.selectors import LabelSelector, SelectorError
from nominee.machinery.runtime.clock import Clock, to_time

TRIES_MAX = 20
RETRY_SECONDS = 0.5
_SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
_UNSAFE = "ignoreStoreReadErrorWithClusterBreakingPotential"

_T = TypeVar("_T")


def delete_options(eviction: policy.Eviction, *, dry_run: bool) -> meta.DeleteOptions:
    """Return the eviction's delete options with the request's dry run.

    Raises: StatusError 500 when the two contradict each other.
    """
    options = copy_of(eviction.deleteOptions)
    asked = ["All"] if dry_run else []
    if not options.dryRun:
        options.dryRun.extend(asked)
    elif asked and list(options.dryRun) != asked:
        raise StatusError(
            500,
            "",
            f"Non-matching dry-run options in request and content: [{' '.join(asked)}] and"
            f" [{' '.join(options.dryRun)}]",
        )
    return options


@dataclass(slots=True)
class EvictionRequest:
    """One eviction. `strategy` is the pod's, `status_strategy` that of its status."""

    store: Store
    strategy: Strategy[core.Pod]
    write_status: Callable[[str, str, Callable[[Any], None], bool], Awaitable[CachedObject]]
    """Update a pod's status: (namespace, name, change in place, dry run)."""
    clock: Clock
    env: Environment
    namespace: str
    name: str

    def _environment(self) -> Environment:
        """Return the request's environment at this time: it may have waited since it began."""
        return replace(self.env, now=to_time(self.clock.now()))

    async def run(self, eviction: policy.Eviction, *, dry_run: bool) -> CachedObject:
        """Evict the pod; return it as deleted or marked.

        Raises: StatusError 400, 403, 404, 409, 422, 429, 500.
        """
        if eviction.metadata.name != self.name:
            raise errors.bad_request("name in URL does not match name in Eviction object")
        options = delete_options(eviction, dry_run=dry_run)
        if options.HasField(_UNSAFE) and getattr(options, _UNSAFE):
            raise errors.invalid(
                GroupKind("policy", "Eviction"),
                self.name,
                [
                    field.invalid(
                        f"deleteOptions.{_UNSAFE}",
                        True,
                        "can not be set for pod eviction, try after removing the option",
                    )
                ],
            )
        asked_revision = options.preconditions.HasField("resourceVersion")

        async def without_budget() -> tuple[CachedObject, bool]:
            pod = await self.store.read(POD, self.namespace, self.name)
            if not _ignores_budgets(pod.message):
                return pod, False
            pinned = options
            if _may_become_ready(pod.message) and not asked_revision:
                pinned = _at_revision(options, pod.revision)
            return await self._mark_and_delete(pinned), True

        pod, deleted = await self._retried(without_budget, retry=not asked_revision)
        if deleted:
            return pod
        unready_budget = await self._ask_budget(pod.message, bool(options.dryRun))
        if unready_budget is None:
            return await self._mark_and_delete(options)
        # It must still be the unready pod that was checked.
        try:
            return await self._mark_and_delete(_at_revision(options, pod.revision))
        except StatusError as error:
            if errors.is_conflict(error) and not asked_revision:
                raise budget.not_processed(unready_budget) from error
            raise

    async def _retried(self, attempt: Callable[[], Awaitable[_T]], *, retry: bool = True) -> _T:
        """Retry an attempt on conflicts; the last conflict is raised."""
        for _ in range(TRIES_MAX - 1 if retry else 0):
            try:
                return await attempt()
            except StatusError as error:
                if not errors.is_conflict(error):
                    raise
            await self.clock.sleep(RETRY_SECONDS)
        return await attempt()

    async def _ask_budget(self, pod: core.Pod, dry_run: bool) -> str | None:
        """Count the disruption; return the budget's name for an unready pod that need not count."""
        budgets = [
            found
            for found in await self.store.list(POD_DISRUPTION_BUDGET, self.namespace)
            if _selects(found.message, pod)
        ]
        if not budgets:
            return None
        if len(budgets) > 1:
            raise StatusError(500, "", _SEVERAL)
        found = budgets[0]
        if not condition_is(pod.status.conditions, "Ready") and budget.spares_unready(found.message):
            return found.name
        newest: CachedObject | None = found

        async def decrement() -> None:
            nonlocal newest
            current = newest or await self.store.read(POD_DISRUPTION_BUDGET, self.namespace, found.name)
            newest = None
            await self._decrement(current, dry_run)

        await self._retried(decrement)
        return None

    async def _decrement(self, current: CachedObject, dry_run: bool) -> None:
        """Count one disruption at exactly this version of the budget.

        Raises: StatusError 409 when the budget has changed.
        """
        new = budget.decremented(current.message, self.name, self._environment().now)
        if dry_run:
            return

        async def mutate(found: CachedObject) -> Any:
            if found.revision != current.revision:
                raise errors.conflict(POD_DISRUPTION_BUDGET, current.name)
            return new

        await self.store.update(POD_DISRUPTION_BUDGET, self.namespace, current.name, mutate, at=current)

    async def _mark_and_delete(self, options: meta.DeleteOptions) -> CachedObject:
        if not options.dryRun:

            def mark(pod: core.Pod) -> None:
                check_preconditions(self.strategy, pod.metadata, options)
                condition = core.PodCondition(
                    type="DisruptionTarget",
                    status="True",
                    reason="EvictionByEvictionAPI",
                    message="Eviction API: evicting",
                )
                set_condition(pod.status.conditions, condition, self._environment().now)

            marked = await self.write_status(self.namespace, self.name, mark, False)
            if options.preconditions.HasField("resourceVersion"):
                options = _at_revision(options, marked.revision)
        env = self._environment()
        deletion = Deletion(self.store, self.strategy, self.namespace, self.name, options, env)
        return (await deletion.run())[0]


def _ignores_budgets(pod: core.Pod) -> bool:
    """Report whether budgets do not protect a pod: it is pending, finished or terminating."""
    return pod.status.phase in ("Succeeded", "Failed", "Pending") or pod.metadata.HasField(
        "deletionTimestamp"
    )


def _may_become_ready(pod: core.Pod) -> bool:
    return pod.status.phase not in ("Succeeded", "Failed") and not pod.metadata.HasField("deletionTimestamp")


def _at_revision(options: meta.DeleteOptions, revision: int) -> meta.DeleteOptions:
    pinned = copy_of(options)
    pinned.preconditions.resourceVersion = str(revision)
    return pinned


def _selects(found: policy.PodDisruptionBudget, pod: core.Pod) -> bool:
    """Report whether a budget selects a pod; a missing selector selects nothing, an empty one everything."""
    if not found.spec.HasField("selector"):
        return False
    try:
        return LabelSelector.from_message(found.spec.selector).matches(pod.metadata.labels)
    except SelectorError:
        return False
