"""managedFields through creates, updates and applies: the functions that the registry calls.

Upstream's chain of managers as three functions: fields of the metadata that have no owner are left out,
tracking begins with the creation or the first apply, there are at most ten update managers, and a manager's
time changes when it changes a field.

Source: apimachinery 1.36, util/managedfields/internal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from google.protobuf.message import Message

from nominee.apiserver.managed_fields import entries, last_applied, resets
from nominee.apiserver.managed_fields.entries import APPLY, UPDATE, BadEntries, Managed
from nominee.apiserver.managed_fields.fields.field_set import EMPTY, FieldSet
from nominee.apiserver.managed_fields.fields.paths import field
from nominee.apiserver.managed_fields.fields.schema import Type, of_message
from nominee.apiserver.managed_fields.fields.typed import TypedError, validate
from nominee.apiserver.managed_fields.merge.merge_engine import Conflicts, Engine, Manager, Owned, Owners
from nominee.apiserver.schema.go_errors import conversion_problem
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause, StatusError, bad_request
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import meta
from nominee.machinery.wire import codec

_SELF: Final = Manager("current-operation", "")
_BEFORE: Final = "before-first-apply"
_UNKNOWN: Final = "unknown"
_METADATA: Final = field("metadata")
_STRIPPED: Final = FieldSet.of(
    (field("apiVersion"),),
    (field("kind"),),
    (_METADATA,),
    *(
        (_METADATA, field(name))
        for name in (
            "name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation",
            "managedFields", "resourceVersion",
        )
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The kind and subresource of a write, and the fields that it does not change (dotted paths)."""

    kind: AnyKind
    subresource: str = ""
    reset_fields: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """The full name of the kind's message."""
        return str(self.kind.message.DESCRIPTOR.full_name)

    @property
    def declared(self) -> Type:
        """The type of the kind's objects."""
        return of_message(self.message)

    def engine(self) -> Engine:
        """Return the engine that merges objects of this kind."""
        return Engine(self.declared, self.kind.api_version, resets.keep(self.reset_fields))


@dataclass(frozen=True, slots=True)
class Who:
    """The manager of a request, and the request's time (whole seconds)."""

    name: str
    now: meta.Time


def is_reset(found: Any) -> bool:
    """Report whether the client resets managedFields: one empty entry, which an empty list is decoded to."""
    return len(found) == 1 and found[0] == meta.ManagedFieldsEntry()


def track_create(endpoint: Endpoint, new: Any, who: Who) -> None:
    """Set managedFields of a new object: its creator owns everything."""
    given = _decoded(endpoint, new.metadata.managedFields)
    new.metadata.ClearField("managedFields")
    old, document = _empty(endpoint.kind), codec.to_json(new)
    try:
        managed = _updated(endpoint, old, document, given or Managed(), who)
    except ValueError:
        # Elements of lists without their keys: no manager can own them.
        return
    _write(new, managed)


def track_update(endpoint: Endpoint, live: Any, new: Any, who: Who) -> None:
    """Set managedFields of a changed object that is tracked.

    They stay as they are when the object's fields cannot be determined.
    """
    managed = _of_live_or_new(endpoint, live, new)
    new.metadata.ClearField("managedFields")
    if not managed.owners:
        return
    try:
        old, document = _differing(live, new)
        managed = _updated(endpoint, old, document, managed, who)
    except ValueError:
        # Elements of lists without their keys.
        new.metadata.managedFields.MergeFrom(live.metadata.managedFields)
        return
    _write(new, managed)


def apply(endpoint: Endpoint, live: Any | None, config: Any, who: Who, *, force: bool) -> Any:
    """Return the object that a configuration makes of the live one (None: it does not exist).

    Its managedFields are set.

    Raises: StatusError 400 and 500 for a configuration of another type, 409 with the conflicts.
    """
    check_type(endpoint.kind, config)
    base: Any = live if live is not None else endpoint.kind.message()
    try:
        managed = entries.decode(base.metadata.managedFields, endpoint.message)
    except BadEntries as error:
        raise StatusError(500, "", f"failed to decode managed fields: {error}") from None
    shown = copy_of(base)
    shown.metadata.ClearField("managedFields")
    document = _document(endpoint, shown)
    try:
        if not managed.owners:
            before = Who(_BEFORE, who.now)
            managed = _updated(endpoint, _empty(endpoint.kind), document, managed, before)
        applied, managed = _applied(endpoint, document, config, managed, who, force=force)
    except ValueError as error:
        # The live object has elements of lists without their keys.
        text = f"failed to create typed live object ({_named(document)}): {error}"
        raise StatusError(500, "", text) from None
    made = shown if applied is None else _to_object(endpoint, applied, config)
    if who.name == "kubectl" and last_applied.text_of(made):
        last_applied.write(made, config)
    _write(made, managed)
    return made


def check_type(kind: AnyKind, config: Any) -> None:
    """Check that a configuration is of the endpoint's type.

    Raises: StatusError 400.
    """
    version, name = config.get("apiVersion"), config.get("kind")
    version = version if isinstance(version, str) and version.count("/") < 2 else ""
    name = name if isinstance(name, str) else ""
    if (version, name) != (kind.api_version, kind.kind):
        group, _, short = version.rpartition("/")
        raise bad_request(f"invalid object type: {group}/{short}, Kind={name}")


def _applied(
    endpoint: Endpoint, live: Any, config: Any, managed: Managed, who: Who, *, force: bool
) -> tuple[Any, Managed]:
    """Return (the merged document or None, managedFields)."""
    metadata = config.get("metadata")
    if isinstance(metadata, dict) and isinstance(metadata.get("managedFields"), list):
        raise bad_request("metadata.managedFields must be nil")
    try:
        validate(config, endpoint.declared)
    except TypedError as error:
        raise StatusError(
            500, "", f"failed to create typed patch object ({_named(config)}): {error}"
        ) from None
    manager = entries.identity(who.name or _UNKNOWN, APPLY, "", endpoint.subresource)
    engine, owners = endpoint.engine(), _served(endpoint, managed.owners)
    try:
        merged, owners = engine.apply(live, config, owners, manager, force=force)
    except Conflicts as conflicts:
        allowed = last_applied.unchanged_fields(endpoint.declared, live) if who.name == "kubectl" else EMPTY
        left = [(owner, path) for owner, path in conflicts.found if path not in allowed]
        if left:
            raise conflict(left) from None
        merged, owners = engine.apply(live, config, owners, manager, force=True)
    times = dict(managed.times)
    if merged is not None:
        times[manager] = who.now
    owners = _elsewhere(endpoint, managed.owners) | _stripped(owners, manager)
    return merged, Managed(owners, times)


def conflict(found: list[tuple[Manager, tuple[str, ...]]]) -> StatusError:
    """Return the 409 for fields that other managers own."""
    from nominee.apiserver.managed_fields.fields.paths import shown_path

    causes = [
        Cause("FieldManagerConflict", f"conflict with {entries.describe_manager(owner)}", shown_path(path))
        for owner, path in found
    ]
    if len(causes) == 1:
        text = f"Apply failed with 1 conflict: {causes[0].message}: {causes[0].field}"
    else:
        lines = []
        for owner in sorted({owner for owner, _ in found}, key=entries.sort_text):
            lines.append(f"conflicts with {entries.describe_manager(owner)}:")
            lines += [f"- {shown_path(path)}" for each, path in found if each == owner]
        text = f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines)
    return StatusError(409, "Conflict", text, causes=causes)


def _updated(endpoint: Endpoint, old: Any, new: Any, managed: Managed, who: Who) -> Managed:
    """Return managedFields after a write that was not an apply."""
    owners = endpoint.engine().update(old, new, _served(endpoint, managed.owners), _SELF)
    owners = _stripped(owners, _SELF)
    times = dict(managed.times)
    taken = owners.pop(_SELF, None)
    if taken is not None:
        api_version = endpoint.kind.api_version
        manager = entries.identity(who.name or _UNKNOWN, UPDATE, api_version, endpoint.subresource)
        before = owners.get(manager)
        fields = taken.fields | before.fields if before is not None else taken.fields
        owners[manager] = Owned(fields, api_version, applied=False)
        times[manager] = who.now
    return entries.limit_entries(Managed(_elsewhere(endpoint, managed.owners) | owners, times))


def _served(endpoint: Endpoint, owners: Owners) -> Owners:
    """Return the owners in versions that are still served."""
    version = endpoint.kind.api_version
    return {manager: owned for manager, owned in owners.items() if owned.api_version == version}


def _elsewhere(endpoint: Endpoint, owners: Owners) -> Owners:
    """Return the owners in another served version (Events have two): they are not converted, and stay."""
    own = endpoint.kind
    return {
        manager: owned
        for manager, owned in owners.items()
        if owned.api_version != own.api_version and kinds.by_kind(owned.api_version, own.kind) is not None
    }


def _stripped(owners: Owners, manager: Manager) -> Owners:
    owned = owners.get(manager)
    if owned is not None:
        fields = owned.fields - _STRIPPED
        del owners[manager]
        if fields:
            owners[manager] = Owned(fields, owned.api_version, owned.applied)
    return owners


def _write(obj: Any, managed: Managed) -> None:
    obj.metadata.ClearField("managedFields")
    obj.metadata.managedFields.extend(entries.encode(managed))


def _decoded(endpoint: Endpoint, found: Any) -> Managed | None:
    """Return the decoded managedFields, or None when there is nothing or nothing that can be decoded."""
    if not found:
        return None
    try:
        managed = entries.decode(found, endpoint.message)
    except BadEntries:
        return None
    return managed if managed.owners else None


def _of_live_or_new(endpoint: Endpoint, live: Any, new: Any) -> Managed:
    """Return the body's managedFields, or else the live ones: an old client must not clear them."""
    if not endpoint.subresource:
        given = new.metadata.managedFields
        if is_reset(given):
            return Managed()
        managed = _decoded(endpoint, given)
        if managed is not None:
            return managed
    return _decoded(endpoint, live.metadata.managedFields) or Managed()


def _document(endpoint: Endpoint, obj: Any) -> Any:
    """Return an object's JSON with its type, also for a type that is not stored (Scale)."""
    return {"kind": endpoint.kind.kind, "apiVersion": endpoint.kind.api_version, **codec.to_json(obj)}


@cache
def _empty(kind: AnyKind) -> Any:
    """Return the document of an object without any field set. It is shared: never change it."""
    return codec.to_json(kind.message())


def _differing(live: Any, new: Any) -> tuple[Any, Any]:
    """Return the documents of the parts that differ: equal parts need no conversion to JSON."""
    old_part, new_part = type(live)(), type(live)()
    for each in live.DESCRIPTOR.fields:
        name = each.name
        before, after = getattr(live, name), getattr(new, name)
        if name == "metadata":
            for source, target in ((before, old_part.metadata), (after, new_part.metadata)):
                target.CopyFrom(source)
                target.ClearField("managedFields")
                target.ClearField("resourceVersion")
        elif isinstance(before, Message):
            # A message that is set and empty differs from one that is not set.
            if live.HasField(name) == new.HasField(name) and before == after:
                continue
            for whole, part in ((live, old_part), (new, new_part)):
                if whole.HasField(name):
                    getattr(part, name).CopyFrom(getattr(whole, name))
        elif before != after:
            for source, part in ((live, old_part), (new, new_part)):
                _copy_field(source, part, each)
    return codec.to_json(old_part), codec.to_json(new_part)


def _copy_field(source: Any, target: Any, descriptor: Any) -> None:
    name = descriptor.name
    value = getattr(source, name)
    if hasattr(value, "MergeFrom"):
        getattr(target, name).MergeFrom(value)
    elif source.HasField(name):
        setattr(target, name, value)


def _named(config: Any) -> str:
    """Return how errors name a configuration: namespace/name; its type."""
    metadata = config.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    namespace, name = (
        value if isinstance(value := metadata.get(key), str) else "" for key in ("namespace", "name")
    )
    group, _, version = str(config["apiVersion"]).rpartition("/")
    return f"{namespace}/{name}; {group}/{version}, Kind={config['kind']}"


def _to_object(endpoint: Endpoint, document: Any, config: Any) -> Any:
    try:
        return codec.from_json(endpoint.kind.message, document)
    except codec.DecodeError as error:
        group, _, version = endpoint.kind.api_version.rpartition("/")
        problem = f"unable to convert unstructured object to {group}/{version}, Kind={endpoint.kind.kind}"
        reason = conversion_problem(endpoint.kind.message, document, error)
        raise StatusError(
            500,
            "",
            f"failed to convert new object ({_named(config)}) to proper version: {problem}: {reason}",
        ) from None
