"""The steps around a strategy that are the same for every kind. Pure.

Source: kube-apiserver 1.36, registry/rest.
"""

from __future__ import annotations

from typing import Any

from nominee.apiserver.kinds.strategy import Environment, Strategy
from nominee.apiserver.kinds.table import rules_of
from nominee.apiserver.objects.requests import WriteOptions
from nominee.apiserver.registry.body_checks import check_namespace
from nominee.apiserver.storage.interface import VALUE_BYTES_MAX
from nominee.apiserver.validation import field
from nominee.apiserver.validation.objects import metadata
from nominee.machinery.api import errors
from nominee.machinery.api.errors import GroupKind
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.pb import meta
from nominee.machinery.wire import presence


def check_options(name: str, options: WriteOptions, *, force: bool = False) -> None:
    """Check the options of a write; `name` is the options' kind, `force` whether it may be set.

    Raises: StatusError 422.
    """
    if not options.field_manager and options.force is None and not force:
        return
    causes = []
    if options.force is not None and not force and name == "PatchOptions":
        causes.append(field.forbidden("force", "may not be specified for non-apply patch"))
    if force and not options.field_manager:
        causes.append(field.required("fieldManager", "is required for apply patch"))
    causes += metadata.field_manager("fieldManager", options.field_manager)
    if causes:
        raise errors.invalid(GroupKind("meta.k8s.io", name), "", causes)


def check_size(kind: AnyKind, new: Any) -> None:
    """Refuse an object that etcd would refuse, before defaults, managedFields and validation take seconds.

    ConfigMaps and Secrets have a lower limit of their own, with another message.

    Raises: StatusError 413.
    """
    if rules_of(kind).limits_own_size:
        return
    size = new.ByteSize()
    if size > VALUE_BYTES_MAX:
        raise errors.request_too_large(f"the object has {size} bytes, limit is {VALUE_BYTES_MAX}")


def warn_of_double_owners(new: meta.ObjectMeta, options: WriteOptions, warnings: list[str]) -> None:
    """Remove duplicate owner references in place, adding a warning if the client gets warnings."""
    text = without_double_owners(new)
    if text and options.warn:
        warnings.append(text)


def without_double_owners(new: meta.ObjectMeta, *, patched: bool = False) -> str:
    """Remove duplicate owner references in place, and return a warning about them, or ""."""
    references = new.ownerReferences
    if len(references) < 2:
        return ""
    kept: list[meta.OwnerReference] = []
    twice: list[str] = []
    for reference in references:
        if reference in kept:
            twice.append(reference.uid)
        else:
            kept.append(reference)
    if not twice:
        return ""
    del references[:]
    references.extend(kept)
    when = " after mutating admission happens" if patched else ""
    return (
        f".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in"
        " 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s)"
        f" observed: {', '.join(twice)}"
    )


def fill_metadata(new: meta.ObjectMeta, uid: str, env: Environment) -> None:
    """Set the metadata that only the server sets, and clear fields that a client may not set."""
    new.creationTimestamp.CopyFrom(env.now)
    new.uid = uid
    new.ClearField("deletionTimestamp")
    new.ClearField("deletionGracePeriodSeconds")
    if new.selfLink:
        new.selfLink = ""


def before_create(strategy: Strategy[Any], new: Any, env: Environment) -> None:
    """Prepare and validate a new object in place.

    Raises: StatusError 422.
    """
    strategy.prepare_for_create(new, env)
    causes = strategy.validate(new, env)
    if causes:
        raise errors.invalid(strategy.kind, new.metadata.name, causes)
    if not strategy.validates_metadata:
        causes = metadata.object_meta(new.metadata, namespaced=strategy.kind.namespaced, standard=False)
        if causes:
            raise errors.invalid(strategy.kind, new.metadata.name, causes)
    strategy.canonicalize(new)


def before_update(strategy: Strategy[Any], new: Any, old: Any, env: Environment) -> None:
    """Prepare and validate a changed object in place, and fill presence in `new`.

    A body for another namespace is refused before anything else is checked.

    Raises: StatusError 400, 422.
    """
    presence.fill(new)
    metadata_new, metadata_old = new.metadata, old.metadata
    check_namespace(strategy, metadata_old.namespace, metadata_new)
    metadata_new.generation = metadata_old.generation
    strategy.prepare_for_update(new, old, env)
    if not metadata_new.uid:
        metadata_new.uid = metadata_old.uid
    metadata_new.creationTimestamp.CopyFrom(metadata_old.creationTimestamp)
    if metadata_old.HasField("deletionTimestamp"):
        metadata_new.deletionTimestamp.CopyFrom(metadata_old.deletionTimestamp)
    if metadata_old.HasField("deletionGracePeriodSeconds") and not metadata_new.HasField(
        "deletionGracePeriodSeconds"
    ):
        metadata_new.deletionGracePeriodSeconds = metadata_old.deletionGracePeriodSeconds
    causes = metadata.object_meta(metadata_new, namespaced=strategy.kind.namespaced, standard=False)
    causes += metadata.object_meta_update(metadata_new, metadata_old, standard=False)
    causes += strategy.validate_update(new, old, env)
    if causes:
        raise errors.invalid(strategy.kind, metadata_new.name, causes)
    strategy.canonicalize(new)
