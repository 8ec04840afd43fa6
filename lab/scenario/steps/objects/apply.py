"""`apply`: create objects, or merge manifests into those that exist."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from google.protobuf.message import Message

from nominee.lab.scenario.acting.base import Action, Performed, Phase, Undoing
from nominee.lab.scenario.acting.written_fields import written
from nominee.lab.scenario.conditions.object import DEFAULT_NAMESPACE
from nominee.lab.scenario.fields.fragments import Fragment
from nominee.lab.scenario.fields.names import near
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.lab.scenario.fields.substitution import escaped, used
from nominee.lab.scenario.observing.base import ConditionParser, JsonObject
from nominee.localcluster.cluster import ClusterError
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError, is_already_exists, is_not_found
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.objects import metadata_of
from nominee.machinery.wire.files.manifests import parse_object
from nominee.machinery.wire.values.scalars import DecodeError, Json

if TYPE_CHECKING:
    from nominee.lab.scenario.acting.stage import Stage

_GONE_SECONDS_MAX: Final = 30.0
_POLL_SECONDS: Final = 0.02
_OWNERS = (
    kinds.HORIZONTAL_POD_AUTOSCALER, kinds.DEPLOYMENT, kinds.REPLICA_SET, kinds.REPLICATION_CONTROLLER,
    kinds.JOB, kinds.DAEMON_SET, kinds.STATEFUL_SET,
)  # fmt: skip
_LAST = (kinds.PERSISTENT_VOLUME_CLAIM, kinds.PERSISTENT_VOLUME)
"""Deleted after the pods that use them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Apply(Action):
    """Create objects, or merge them into those that exist, as `nominee apply` does.

    `rejected`: the request must fail with this text in its message.
    """

    verb: ClassVar[str] = "apply"
    row: ClassVar[str] = "a manifest or a list: created, or merged into the object that exists"
    may_be_rejected: ClassVar[bool] = True
    undone_in: ClassVar[Phase | None] = Phase.OBJECTS

    manifests: tuple[JsonObject, ...]
    rejected: str = ""

    @classmethod
    def schema(cls) -> Fragment:
        manifest = {
            "type": "object",
            "required": ["apiVersion", "kind", "metadata"],
            "description": "A manifest.",
        }
        return {
            "description": "Create objects, or merge them into those that exist.",
            "anyOf": [manifest, {"type": "array", "items": manifest, "minItems": 1}],
        }

    @classmethod
    def parse(cls, parser: ConditionParser, path: FieldPath, value: Json, rejected: str) -> Action:
        """Return the step that applies manifests, after a check of their fields."""
        manifests = value if isinstance(value, list) else [value]
        for index, manifest in enumerate(manifests):
            where = (*path, index) if isinstance(value, list) else path
            if rejected or used(manifest):
                continue
            try:
                parse_object(manifest, strict=True)
            except DecodeError as error:
                below = tuple(part for part in re.split(r"[.\[\]]+", error.path) if part)
                place = tuple(map(_index, below))
                message = error.message
                if message == "unknown field":
                    message += near(str(place[-1]), _fields_at(manifest, place[:-1]))
                parser.fault((*where, *place), message)
        return cls(manifests=tuple(manifests), rejected=rejected)

    def describe(self) -> str:
        objects = ", ".join(
            f"{str(each['kind']).lower()}/{each['metadata'].get('name', '')}" for each in self.manifests
        )
        return f"apply {objects}"

    async def perform(self, stage: Stage) -> Performed:
        """Apply the manifests, one after another."""
        said = []
        for manifest in self.manifests:
            try:
                obj = parse_object(manifest, strict=True)
            except DecodeError as error:
                raise ClusterError(f"the manifest is invalid: {error}") from None
            kind, metadata = kinds.of(obj), metadata_of(obj)
            if kind.namespaced and not metadata.namespace:
                metadata.namespace = DEFAULT_NAMESPACE
            stored = await stage.call(partial(_create, stage, obj, manifest), self.rejected)
            if stored is None:
                said.append(f"{kind.kind.lower()}/{metadata.name} is rejected")
                continue
            stage.created[kind, metadata.namespace, metadata.name] = None
            await stage.until_seen(stored)
        return Performed(text=", ".join(said))

    async def undo(self, undoing: Undoing) -> None:
        """Delete the objects that all steps created, and wait until they and what came of them are gone."""
        if not undoing.is_first(self.verb):
            return
        stage = undoing.stage
        for kind, namespace, name in sorted(stage.created, key=lambda each: _order(each[0])):
            await stage.delete(kind, namespace, name, 0 if kind is kinds.POD else None)
        await _until_gone(stage)

    @classmethod
    def of_object(cls, document: JsonObject) -> JsonObject:
        """Return the recorded step that creates an object."""
        return {cls.verb: cls.manifest_of(document)}

    @classmethod
    def of_manifests(cls, name: str, manifests: list[Json]) -> JsonObject:
        """Return the recorded step with a name that applies manifests of `manifest_of`."""
        return {"name": name, cls.verb: manifests}

    @classmethod
    def manifest_of(cls, document: JsonObject) -> Json:
        """Return what clients wrote of an object."""
        return escaped(written(document))


async def _create(stage: Stage, obj: Message, manifest: Mapping[str, Json]) -> Message:
    """Create an object, or merge the manifest into the one that exists."""
    kind, metadata = kinds.of(obj), metadata_of(obj)
    patch = {key: value for key, value in manifest.items() if key != "status"}
    try:
        return await stage.client.create(obj)
    except StatusError as error:
        if not is_already_exists(error):
            raise
    try:
        return await stage.client.patch(kind, metadata.name, metadata.namespace, patch)
    except StatusError as error:
        if not is_not_found(error):
            raise
    return await stage.client.create(obj)  # its deletion has ended in between


def _order(kind: AnyKind) -> int:
    if kind in _OWNERS:
        return 0
    return 2 if kind in _LAST else 1


async def _until_gone(stage: Stage) -> None:
    """Wait until no created object is left, nor a pod or volume that came of them.

    Raises:
        ClusterError: some are left.
    """
    namespaces = {namespace for _, namespace, _ in stage.created if namespace} | {DEFAULT_NAMESPACE}
    created = dict.fromkeys([*(kind for kind, _, _ in stage.created), kinds.POD, kinds.PERSISTENT_VOLUME])
    deadline = stage.clock.monotonic() + _GONE_SECONDS_MAX
    while True:
        left = [
            (kind, metadata_of(obj).namespace, metadata_of(obj).name)
            for kind in created
            for obj in (await stage.client.list(kind)).items
            if (kind, metadata_of(obj).namespace, metadata_of(obj).name) in stage.created
            or (kind is kinds.POD and metadata_of(obj).namespace in namespaces)
            or kind is kinds.PERSISTENT_VOLUME
        ]
        if not left:
            return
        if stage.clock.monotonic() >= deadline:
            names = ", ".join(f"{kind.kind.lower()} {name}" for kind, _, name in left[:5])
            raise ClusterError(f"not gone within {_GONE_SECONDS_MAX:g} s: {names}")
        for kind, namespace, name in left:
            if kind is kinds.POD:
                await stage.delete(kind, namespace, name, 0)
        await stage.clock.sleep(_POLL_SECONDS)


def _index(part: str) -> str | int:
    return int(part) if part.isdigit() else part


def _fields_at(manifest: Mapping[str, Json], place: FieldPath) -> tuple[str, ...]:
    """Return the fields of a kind's message at a place in a manifest; none if the place is in a map."""
    kind = kinds.by_kind(manifest["apiVersion"], manifest["kind"])
    descriptor = kind.message.DESCRIPTOR if kind is not None else None
    for part in place:
        if isinstance(part, int) or descriptor is None:
            continue
        field = descriptor.fields_by_name.get(part)
        descriptor = field.message_type if field is not None else None
    return tuple(descriptor.fields_by_name) if descriptor is not None else ()
