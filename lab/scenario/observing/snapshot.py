"""The objects of some kinds at one revision, for conditions that must not compare two moments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from google.protobuf.message import Message

from nominee.lab.scenario.observing.base import Condition, JsonObject, Observed
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.objects import ObjectKey, key_of
from nominee.machinery.wire.codec import to_json


class Snapshot:
    """Lists of objects; `deletions` are those that the watches have shown."""

    def __init__(
        self,
        listed: Mapping[AnyKind, Sequence[Message]],
        deletions: Callable[[AnyKind], list[tuple[Message, float]]],
    ) -> None:
        self._objects = {kind: {key_of(each): each for each in found} for kind, found in listed.items()}
        self.deletions = deletions

    def get(self, kind: AnyKind, name: str, namespace: str) -> Message | None:
        """Return an object, or None if there is no such object."""
        return self._objects[kind].get(ObjectKey(namespace, name))

    def messages(self, kind: AnyKind, namespace: str = "") -> list[Message]:
        """Return the objects of a kind; "" is all namespaces."""
        return [each for key, each in self._objects[kind].items() if namespace in ("", key.namespace)]

    def json(self, kind: AnyKind, message: Message) -> JsonObject:
        """Return an object as JSON."""
        del kind
        return to_json(message)

    def evaluate(self, condition: Condition) -> Observed:
        """Evaluate a condition that is about objects only."""
        return condition.evaluate(self)
