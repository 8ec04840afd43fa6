"""managedFields in the registry: their changes by each write, and the bodies of server-side apply.

The rules are in `nominee.apiserver.managed_fields`, which is imported on first use. An object is tracked
from its creation when the front asks for it (REST), or else from its first apply; a write of an object that
is not tracked costs two comparisons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nominee.apiserver.kinds.table import strategy_of
from nominee.apiserver.objects.requests import WriteOptions
from nominee.apiserver.registry import rules
from nominee.apiserver.schema.documents import SyntaxProblem, parse_yaml
from nominee.machinery.api.errors import bad_request
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import meta
from nominee.machinery.wire import codec, presence
from nominee.machinery.wire.values.scalars import json_type

if TYPE_CHECKING:
    from nominee.apiserver.managed_fields.manager import Endpoint, Who

MANAGER_BYTES_MAX = 128


@dataclass(frozen=True, slots=True)
class Configuration:
    """The body of a server-side apply; `duplicates` describe the keys that occur twice in an object."""

    document: dict[str, Any]
    duplicates: Sequence[str] = ()


def endpoint(kind: AnyKind, subresource: str = "") -> Endpoint:
    """Return the description of a kind's endpoint for managedFields."""
    from nominee.apiserver.managed_fields.manager import Endpoint

    strategy = strategy_of(kind)
    if subresource:
        strategy = strategy.subresources[subresource]
    return Endpoint(kind, subresource, strategy.reset_fields)


def create(kind: AnyKind, new: Any, options: WriteOptions, now: meta.Time) -> None:
    """Set a new object's managedFields, before admission, whose changes have no manager."""
    if not options.tracked and not new.metadata.managedFields:
        return
    from nominee.apiserver.managed_fields.manager import track_create

    track_create(endpoint(kind), new, who(options, now))


def update(
    kind: AnyKind, subresource: str, live: Any, new: Any, options: WriteOptions, now: meta.Time
) -> None:
    """Set managedFields of a changed object."""
    if not live.metadata.managedFields and not new.metadata.managedFields:
        return
    from nominee.apiserver.managed_fields.manager import track_update

    track_update(endpoint(kind, subresource), live, new, who(options, now))


def keep_times(new: Any, live: Any) -> None:
    """Restore the old managedFields when a write changes nothing but their times."""
    before, after = live.metadata.managedFields, new.metadata.managedFields
    if not after or len(before) != len(after) or before == after:
        return
    if any(_timeless(one) != _timeless(other) for one, other in zip(before, after, strict=True)):
        return
    trial = copy_of(new)
    trial.metadata.ClearField("managedFields")
    trial.metadata.managedFields.MergeFrom(before)
    presence.fill(trial)
    if trial == live:
        new.metadata.CopyFrom(trial.metadata)


def _timeless(entry: meta.ManagedFieldsEntry) -> tuple[str, ...]:
    raw = entry.fieldsV1.Raw.decode("utf-8", "replace")
    return (entry.manager, entry.operation, entry.apiVersion, entry.subresource, raw)


def apply(
    kind: AnyKind,
    subresource: str,
    live: Any | None,
    config: Configuration,
    options: WriteOptions,
    now: meta.Time,
) -> Any:
    """Apply a configuration to an object, or to no object. Raises: StatusError 400, 409, 500."""
    from nominee.apiserver.managed_fields.manager import apply

    manager = who(options, now)
    made = apply(endpoint(kind, subresource), live, config.document, manager, force=bool(options.force))
    check_duplicates(config, options)
    return made


def check_duplicates(config: Configuration, options: WriteOptions) -> None:
    """Refuse keys that occur twice where field validation is strict. Raises: StatusError 400."""
    if config.duplicates and options.field_validation == "Strict":
        lines = "\n".join(f"  {text}" for text in config.duplicates)
        problem = f"error converting YAML to JSON: yaml: unmarshal errors:\n{lines}"
        raise bad_request(f"error strict decoding YAML: {problem}")


def duplicate_warnings(config: Configuration, options: WriteOptions) -> Sequence[str]:
    """Return the warnings for keys that occur twice."""
    return config.duplicates if options.warn and options.field_validation != "Ignore" else ()


def configuration(patch: bytes) -> Configuration:
    """Return the configuration in the body of an apply. Raises: StatusError 400."""
    try:
        document = parse_yaml(patch.decode("utf-8", "replace"))
    except SyntaxProblem as problem:
        raise bad_request(f"error decoding YAML: error converting YAML to JSON: {problem}") from None
    config = document.value if document.value is not None else {}
    if not isinstance(config, dict):
        text = f"json: cannot unmarshal {json_type(config)} into Go value of type map[string]interface {{}}"
        raise bad_request(f"error decoding YAML: error unmarshaling JSON: while decoding JSON: {text}")
    return Configuration(config, document.duplicates)


def check_size(kind: AnyKind, config: Configuration) -> None:
    """Refuse a configuration that is too large by itself before it is merged. Raises: StatusError 413."""
    try:
        message = codec.from_json(kind.message, config.document)
    except codec.DecodeError:
        # The apply reports the error.
        return
    rules.check_size(kind, message)


def who(options: WriteOptions, now: meta.Time) -> Who:
    """Return the manager of a write, for its managedFields."""
    from nominee.apiserver.managed_fields.manager import Who

    return Who(options.field_manager or manager_of(options.user_agent), now)


def manager_of(user_agent: str) -> str:
    """Return the default field manager of a client: its user agent up to the first slash."""
    name, length = "", 0
    for character in user_agent.partition("/")[0]:
        if not character.isprintable():
            continue
        length += len(character.encode())
        if length > MANAGER_BYTES_MAX:
            break
        name += character
    return name
