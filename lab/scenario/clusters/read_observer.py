"""Observe the lists and the events of watches that a simulation's API servers send to the components."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final
from weakref import WeakKeyDictionary

from google.protobuf.message import Message

from nominee.lab.history.invariants.checking.reads import Change, Read, Resumption, Selection, State
from nominee.machinery.api.kinds import STORED_AS, AnyKind, by_resource
from nominee.machinery.api.objects import metadata_of, resource_version_of
from nominee.machinery.api.selectors import FieldSelector, LabelSelector
from nominee.machinery.wire import envelope
from nominee.pb.nominee_api.v1 import api_pb2 as api
from nominee.simulation.network.call import Call
from nominee.simulation.network.deliveries import PLAYER

_Event = api.WatchEvent
_ANY: Final = frozenset({"", "0"})
"""The resourceVersions with which a watch begins with the present state."""


@dataclass(slots=True)
class _Stream:
    """An open watch: `position` is the revision up to which it has shown everything, None at first."""

    client: str
    place: tuple[int, Selection]
    position: int | None
    first: set[int] = field(default_factory=set)
    """The versions of the state with which it begins."""


class ReadObserver:
    """Reports the reads of the components to `observe`, not those of the program that simulates."""

    def __init__(self, observe: Callable[[Read], None]) -> None:
        self._observe = observe
        self._streams: WeakKeyDictionary[Call, _Stream] = WeakKeyDictionary()
        self._shown: dict[tuple[int, Selection], int] = {}
        """The newest revision that a process was shown of a selection."""

    def on_watch(self, call: Call, data: bytes) -> None:
        """Take the request of a watch."""
        request = api.WatchRequest.FromString(data)
        place = _place(call, request)
        if place is None:
            return
        begins_with_state = request.resource_version in _ANY
        if request.HasField("send_initial_events"):
            begins_with_state = request.send_initial_events
        position = None
        if not begins_with_state and request.resource_version not in _ANY:
            position = int(request.resource_version)
            if place in self._shown:
                client, newest = _name(call), self._shown[place]
                self._observe(Resumption(client=client, selection=place[1], revision=position, newest=newest))
        self._streams[call] = _Stream(_name(call), place, position)

    def on_events(self, call: Call, data: bytes) -> None:
        """Take a message of a watch."""
        stream = self._streams.get(call)
        if stream is None:
            return
        for event in api.WatchResponse.FromString(data).events:
            if event.type == _Event.ERROR:
                del self._streams[call]
                return
            self._on_event(stream, event)

    def _on_event(self, stream: _Stream, event: api.WatchEvent) -> None:
        _, selection = stream.place
        after, stream.position = stream.position, event.revision
        if after is not None:
            removed = None if event.type == _Event.BOOKMARK else event.type == _Event.DELETED
            self._observe(
                Change(
                    client=stream.client,
                    selection=selection,
                    after=after,
                    revision=event.revision,
                    removed=removed,
                )
            )
        elif event.type == _Event.ADDED:
            stream.first.add(event.revision)
            stream.position = None
        elif event.type == _Event.BOOKMARK:
            self._observe(
                State(
                    client=stream.client,
                    selection=selection,
                    revision=event.revision,
                    versions=frozenset(stream.first),
                )
            )
        if stream.position is not None:
            self._note(stream.place, event.revision)

    def on_list(self, call: Call, request: api.ListRequest, data: bytes) -> None:
        """Take a list."""
        place = _place(call, request)
        response = api.ListResponse.FromString(data)
        if place is None or not response.resource_version:
            return
        kind = by_resource(request.target.group, request.target.version, request.target.resource)
        assert kind is not None
        revision = int(response.resource_version)
        versions = frozenset(resource_version_of(envelope.decode(kind, item)) for item in response.items)
        is_whole = not (getattr(request, "continue") or getattr(response, "continue"))
        self._observe(
            State(
                client=_name(call),
                selection=place[1],
                revision=revision,
                versions=versions,
                is_whole=is_whole,
            )
        )
        self._note(place, revision)

    def _note(self, place: tuple[int, Selection], revision: int) -> None:
        self._shown[place] = max(self._shown.get(place, 0), revision)


def _name(call: Call) -> str:
    return call.client.name if call.client is not None else ""


def _place(call: Call, request: api.ListRequest | api.WatchRequest) -> tuple[int, Selection] | None:
    """Return the process that asks, and the selection; None for the program that simulates."""
    target = request.target
    kind = by_resource(target.group, target.version, target.resource)
    if call.client is None or call.client.name == PLAYER or kind is None:
        return None
    stored = STORED_AS.get(kind, kind)
    return call.client.pid, _selection(
        stored, target.namespace, request.label_selector, request.field_selector
    )


@lru_cache(maxsize=1024)
def _selection(kind: AnyKind, namespace: str, labels: str, fields: str) -> Selection:
    if not (labels or fields):
        return Selection(kind, namespace)
    by_labels, by_fields = LabelSelector.parse(labels), FieldSelector.parse(fields)
    names = [term.field for term in by_fields.terms]

    def matches(obj: Message) -> bool:
        values = {name: _value(obj, name) for name in names}
        return by_labels.matches(metadata_of(obj).labels) and by_fields.matches(values)

    return Selection(kind, namespace, (labels, fields), matches)


def _value(obj: Message, path: str) -> str:
    """Return a field that objects are selected by, such as `spec.nodeName`."""
    value: object = obj
    for name in path.split("."):
        value = getattr(value, name)
    return str(value).lower() if isinstance(value, bool) else str(value)
