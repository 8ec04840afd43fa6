"""managedFields in the registry: what each write has to do with them, and server-side apply's bodies.

The rules are in `apiserver.managed_fields`, which is imported when somebody first needs it. An object is
tracked from its creation where the front wants that (REST), or else from its first apply; a write of an
object that is not tracked costs two looks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apiserver.objects.requests import WriteOptions
from apiserver.registry import rules
from apiserver.schema.documents import SyntaxProblem, parse_yaml
from machinery.api.errors import bad_request
from machinery.api.kinds import Kind
from machinery.api.pb import meta
from machinery.wire import codec, presence
from machinery.wire.scalars import json_type

if TYPE_CHECKING:
    from apiserver.managed_fields.manager import Who

MANAGER_BYTES_MAX = 128


def create(kind: Kind[Any], new: Any, options: WriteOptions, now: meta.Time) -> None:
    """A new object's managedFields; before admission, which nobody manages."""
    if not options.tracked and not new.metadata.managedFields:
        return
    from apiserver.managed_fields.manager import Endpoint, track_create

    track_create(Endpoint(kind), new, who(options, now))


def update(
    kind: Kind[Any], subresource: str, live: Any, new: Any, options: WriteOptions, now: meta.Time
) -> None:
    """A changed object's managedFields."""
    if options.track is not None:
        options.track(live, new, now)
        return
    if not live.metadata.managedFields and not new.metadata.managedFields:
        return
    from apiserver.managed_fields.manager import Endpoint, track_update

    track_update(Endpoint(kind, subresource), live, new, who(options, now))


def keep_times(new: Any, live: Any) -> None:
    """A write that changes nothing but times of managedFields changes nothing."""
    before, after = live.metadata.managedFields, new.metadata.managedFields
    if not after or len(before) != len(after) or before == after:
        return
    if any(_timeless(one) != _timeless(other) for one, other in zip(before, after, strict=True)):
        return
    trial = type(new)()
    trial.CopyFrom(new)
    trial.metadata.ClearField("managedFields")
    trial.metadata.managedFields.MergeFrom(before)
    presence.fill(trial)
    if trial == live:
        new.metadata.CopyFrom(trial.metadata)


def _timeless(entry: meta.ManagedFieldsEntry) -> tuple[str, ...]:
    raw = entry.fieldsV1.Raw.decode("utf-8", "replace")
    return (entry.manager, entry.operation, entry.apiVersion, entry.subresource, raw)


def apply(
    kind: Kind[Any],
    subresource: str,
    live: Any | None,
    configured: tuple[dict[str, Any], list[str]],
    options: WriteOptions,
    now: meta.Time,
) -> Any:
    """Server-side apply of a `configuration` to an object, or to nothing. Raises 400, 409, 500."""
    from apiserver.managed_fields.manager import Endpoint, apply

    config, duplicates = configured
    made = apply(Endpoint(kind, subresource), live, config, who(options, now), force=bool(options.force))
    tell_duplicates(duplicates, options)
    return made


def tell_duplicates(duplicates: list[str], options: WriteOptions) -> None:
    """Field validation of an applied body: 400 where it is strict, else warnings."""
    if duplicates and options.field_validation == "Strict":
        lines = "\n".join(f"  {text}" for text in duplicates)
        problem = f"error converting YAML to JSON: yaml: unmarshal errors:\n{lines}"
        raise bad_request(f"error strict decoding YAML: {problem}")
    if options.warn is not None and options.field_validation != "Ignore":
        for text in duplicates:
            options.warn(text)


def configuration(patch: bytes) -> tuple[dict[str, Any], list[str]]:
    """(what is applied, keys that come twice)."""
    try:
        document = parse_yaml(patch.decode("utf-8", "replace"))
    except SyntaxProblem as problem:
        raise bad_request(f"error decoding YAML: error converting YAML to JSON: {problem}") from None
    config = document.value if document.value is not None else {}
    if not isinstance(config, dict):
        text = f"json: cannot unmarshal {json_type(config)} into Go value of type map[string]interface {{}}"
        raise bad_request(f"error decoding YAML: error unmarshaling JSON: while decoding JSON: {text}")
    return config, document.duplicates


def check_size(kind: Kind[Any], configured: tuple[dict[str, Any], list[str]]) -> None:
    """Refuse a configuration that is too large by itself before it is merged. Raises: StatusError 413."""
    try:
        message = codec.from_json(kind.message, configured[0])
    except codec.DecodeError:
        # To apply it says what is wrong.
        return
    rules.check_size(kind, message)


def who(options: WriteOptions, now: meta.Time) -> Who:
    """The manager that a request is."""
    from apiserver.managed_fields.manager import Who

    name = options.field_manager
    if not name and options.agent is not None:
        name = manager_of(options.agent())
    return Who(name, now)


def manager_of(user_agent: str) -> str:
    """The manager that a client without a name of its own is: its user agent up to the first slash."""
    name, length = "", 0
    for character in user_agent.partition("/")[0]:
        if not character.isprintable():
            continue
        length += len(character.encode())
        if length > MANAGER_BYTES_MAX:
            break
        name += character
    return name
