"""Deletion of an object: at once, gracefully, or when its finalizers are removed.

Pure except for the Store's writes.

Source: kube-apiserver 1.36, registry/rest/delete.go (`begin`) and registry/generic/registry/store.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from nominee.apiserver.kinds.strategy import Environment, Strategy
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.registry.store import Preconditions, Store, Verdict
from nominee.apiserver.validation import field
from nominee.machinery.api import errors
from nominee.machinery.api.errors import GroupKind, GroupResource
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import meta

_GENERATION_MAX = 2**63 - 1
_SECONDS_MAX = 253_402_300_799
"""The last second of the year 9999, the last time that can be read back."""
ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
_POLICIES = ("Foreground", "Background", "Orphan")


class Mode(Enum):
    """The kinds of deletion."""

    NOW = auto()
    """Nothing keeps the object: remove it."""
    MARKED = auto()
    """It has or gets a deletionTimestamp; grace period and finalizers decide when it is removed."""
    PENDING = auto()
    """A deletion that is at least as quick is already in progress."""


def validate_options(options: meta.DeleteOptions) -> None:
    """Check delete options for contradictions.

    Raises: StatusError 422.
    """
    causes = []
    if options.HasField("propagationPolicy") and options.HasField("orphanDependents"):
        causes.append(
            field.invalid(
                "propagationPolicy",
                options.propagationPolicy,
                "orphanDependents and deletionPropagation cannot be both set",
            )
        )
    if options.HasField("propagationPolicy") and options.propagationPolicy not in _POLICIES:
        causes.append(
            field.not_supported("propagationPolicy", options.propagationPolicy, (*_POLICIES, "nil"))
        )
    if any(value != "All" for value in options.dryRun):
        causes.append(field.not_supported("dryRun", list(options.dryRun), ("All",)))
    if causes:
        raise errors.invalid(GroupKind("meta.k8s.io", "DeleteOptions"), "", causes)


def check_preconditions(
    strategy: Strategy[Any], metadata: meta.ObjectMeta, options: meta.DeleteOptions
) -> None:
    """Check the preconditions of delete options.

    Raises: StatusError 409.
    """
    if not options.HasField("preconditions"):
        return
    wanted = options.preconditions
    problem = ""
    if wanted.HasField("uid") and wanted.uid != metadata.uid:
        problem = (
            f"the UID in the precondition ({wanted.uid}) does not match the UID in record ({metadata.uid})."
            " The object might have been deleted and then recreated"
        )
    elif wanted.HasField("resourceVersion") and wanted.resourceVersion != metadata.resourceVersion:
        problem = (
            f"the ResourceVersion in the precondition ({wanted.resourceVersion}) does not match the"
            f" ResourceVersion in record ({metadata.resourceVersion}). The object might have been modified"
        )
    if problem:
        # Upstream puts the kind where the resource belongs.
        raise errors.conflict(GroupResource(strategy.kind.group, strategy.kind.kind), metadata.name, problem)


def begin(strategy: Strategy[Any], new: Any, options: meta.DeleteOptions, env: Environment) -> Mode:
    """Decide how to delete, and set the deletionTimestamp of `new` for a graceful deletion.

    Sets `options.gracePeriodSeconds` to the grace period in force.
    """
    metadata = new.metadata
    check_preconditions(strategy, metadata, options)
    if options.HasField("gracePeriodSeconds") and options.gracePeriodSeconds < 0:
        options.gracePeriodSeconds = 1
    if metadata.HasField("deletionGracePeriodSeconds") and metadata.deletionGracePeriodSeconds < 0:
        metadata.deletionGracePeriodSeconds = 1
    if not strategy.graceful:
        return Mode.NOW
    if metadata.HasField("deletionTimestamp"):
        return _again(metadata, options, env)
    if not strategy.check_graceful_delete(new, options):
        return Mode.NOW
    grace = options.gracePeriodSeconds
    metadata.deletionTimestamp.seconds = min(env.now.seconds + grace, _SECONDS_MAX)
    metadata.deletionTimestamp.nanos = 0
    metadata.deletionGracePeriodSeconds = grace
    if metadata.generation > 0:
        metadata.generation = min(metadata.generation + 1, _GENERATION_MAX)
    return Mode.MARKED


def _again(metadata: meta.ObjectMeta, options: meta.DeleteOptions, env: Environment) -> Mode:
    """Handle a repeated DELETE: only a shorter grace period changes something."""
    grace = metadata.deletionGracePeriodSeconds
    if grace == 0:
        # Marked but not removed: the server crashed in between, or a pod's last finalizer was removed.
        return Mode.NOW
    if not options.HasField("gracePeriodSeconds"):
        options.gracePeriodSeconds = grace
        return Mode.PENDING
    wanted = options.gracePeriodSeconds
    if wanted >= grace:
        return Mode.PENDING
    seconds = metadata.deletionTimestamp.seconds - grace + wanted
    if seconds < env.now.seconds:
        seconds = env.now.seconds
        if wanted != 0:
            wanted = 1
    metadata.deletionTimestamp.seconds = seconds
    metadata.deletionGracePeriodSeconds = wanted
    options.gracePeriodSeconds = wanted
    return Mode.MARKED


def mark_deleted(metadata: meta.ObjectMeta, env: Environment) -> None:
    """Mark an object that only finalizers keep: deletionTimestamp now, grace period 0."""
    if not metadata.HasField("deletionGracePeriodSeconds") and metadata.generation > 0:
        metadata.generation = min(metadata.generation + 1, _GENERATION_MAX)
    if not metadata.HasField("deletionTimestamp") or metadata.deletionTimestamp.seconds > env.now.seconds:
        metadata.deletionTimestamp.CopyFrom(env.now)
    metadata.deletionGracePeriodSeconds = 0


def garbage_finalizers(
    strategy: Strategy[Any], finalizers: list[str], options: meta.DeleteOptions
) -> list[str]:
    """Return the finalizers of the propagation policy: orphan the dependents, or wait for their deletion.

    Without a policy in the options a finalizer of the object decides, then the kind's default.

    Source: kube-apiserver 1.36, registry/generic/registry/store.go.
    """
    if not strategy.collects_garbage:
        return finalizers
    policy = options.propagationPolicy if options.HasField("propagationPolicy") else ""
    if options.HasField("orphanDependents"):
        orphan, foreground = options.orphanDependents, False
    elif policy:
        orphan, foreground = policy == "Orphan", policy == "Foreground"
    else:
        foreground = FOREGROUND in finalizers
        orphan = ORPHAN in finalizers or (strategy.orphans_dependents and not foreground)
    kept = [name for name in finalizers if name not in (ORPHAN, FOREGROUND)]
    wanted = [*kept, *([ORPHAN] if orphan else ()), *([FOREGROUND] if foreground else ())]
    return finalizers if set(wanted) == set(finalizers) else wanted


def warnings(strategy: Strategy[Any], options: meta.DeleteOptions) -> tuple[str, ...]:
    """Return the warnings for DELETEs of this kind (one object or a collection) with these options.

    Source: kube-apiserver 1.36, registry/batch/job/storage.
    """
    if options.HasField("propagationPolicy") or options.HasField("orphanDependents"):
        return ()
    return (strategy.orphaning_warning,) if strategy.orphaning_warning else ()


class _DeleteNow(Verdict):
    """Nothing to mark: remove the object."""


class _Pending(Verdict):
    """The object is being deleted as it is."""


@dataclass(slots=True)
class Deletion:
    """One DELETE of one object, performed by `run`. Times are the environment's."""

    store: Store
    strategy: Strategy[Any]
    namespace: str
    name: str
    options: meta.DeleteOptions
    env: Environment
    finalizers_left: bool = False
    newest: CachedObject | None = None

    @property
    def _dry_run(self) -> bool:
        return bool(self.options.dryRun)

    async def run(self) -> tuple[CachedObject, bool]:
        """Delete the object; return it and whether it is gone.

        Raises: StatusError 404, 409, 422.
        """
        validate_options(self.options)
        store, strategy = self.store, self.strategy
        current = await store.read(strategy.kind, self.namespace, self.name)
        trial = copy_of(current.message)
        options = copy_of(self.options)
        way = begin(strategy, trial, options, self.env)
        if way is Mode.PENDING:
            return current, False
        finalizers = list(trial.metadata.finalizers)
        wanted = garbage_finalizers(strategy, finalizers, options)
        if way is Mode.MARKED or finalizers or wanted != finalizers:
            marked = await self._mark(current)
            if not marked:
                assert self.newest is not None
                return self.newest, False
        return await self._remove(current)

    async def _mark(self, current: CachedObject) -> bool:
        """Write the deletion mark; return whether removal follows at once."""
        grace = 0

        async def mutate(found: CachedObject) -> Any:
            nonlocal grace
            self.newest = found
            new = copy_of(found.message)
            options = copy_of(self.options)
            way = begin(self.strategy, new, options, self.env)
            if way is Mode.PENDING:
                raise _Pending
            finalizers = list(new.metadata.finalizers)
            wanted = garbage_finalizers(self.strategy, finalizers, options)
            if wanted != finalizers:
                new.metadata.ClearField("finalizers")
                new.metadata.finalizers.extend(wanted)
            self.finalizers_left = bool(wanted)
            if way is Mode.NOW:
                if not wanted:
                    raise _DeleteNow
                mark_deleted(new.metadata, self.env)
            grace = options.gracePeriodSeconds
            return new

        try:
            self.newest = await self.store.update(
                self.strategy.kind,
                self.namespace,
                self.name,
                mutate,
                dry_run=self._dry_run,
                at=current,
                filled=True,
            )
        except _DeleteNow:
            return True
        except _Pending:
            return False
        return not self.finalizers_left and grace <= 0

    async def _remove(self, current: CachedObject) -> tuple[CachedObject, bool]:
        latest = self.newest or current
        wanted = self.options.preconditions
        preconditions = Preconditions(
            uid=wanted.uid,
            resource_version=str(latest.revision) if wanted.HasField("resourceVersion") else "",
        )
        try:
            gone = await self.store.delete(
                self.strategy.kind,
                self.namespace,
                self.name,
                preconditions=preconditions,
                dry_run=self._dry_run,
                at=latest,
            )
        except errors.StatusError as error:
            # Another client may remove a marked object first; the outcome is the same.
            if errors.is_not_found(error) and self.newest is not None:
                return self.newest, True
            raise
        return gone, True
