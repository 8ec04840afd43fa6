"""One watch of the API server: the messages of its stream as batches of events, subject to call faults."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeAlias

import grpc
import grpc.aio

from nominee.machinery.api import errors
from nominee.machinery.api.kinds import Kind, M
from nominee.machinery.api.objects import ObjectKey, key_of
from nominee.machinery.api.pb import meta
from nominee.machinery.client import messages
from nominee.machinery.client.calls.unary_call import await_call
from nominee.machinery.runtime import task_faults
from nominee.machinery.runtime.faults.call_faults import FAULTS, Call
from nominee.pb.nominee_api.v1 import api_pb2 as api

if TYPE_CHECKING:
    from grpc.aio import _EOFType

WatchCall: TypeAlias = "grpc.aio.UnaryStreamCall[api.WatchRequest, api.WatchResponse]"
_ERROR = api.WatchEvent.ERROR
_TYPES = {
    api.WatchEvent.ADDED: "ADDED",
    api.WatchEvent.MODIFIED: "MODIFIED",
    api.WatchEvent.DELETED: "DELETED",
    api.WatchEvent.BOOKMARK: "BOOKMARK",
}


@dataclass(frozen=True, slots=True)
class WatchEvent(Generic[M]):
    """ADDED, MODIFIED, DELETED or BOOKMARK; a bookmark's object has only its resourceVersion."""

    type: str
    object: M
    revision: int


class MergedEvents(Generic[M]):
    """The last event of each object, and before a deletion the state that it ended.

    A watch shows no deletion without that state: a handler may find in it how it knows the object, as whether
    a pod was bound. An object that came and went has its deletion alone, which a copy without it passes over.
    """

    def __init__(self) -> None:
        self._events: dict[ObjectKey, tuple[WatchEvent[M], ...]] = {}
        self._unknown: set[ObjectKey] = set()  # names without an object before the first event

    def add(self, events: Iterable[WatchEvent[M]]) -> None:
        """Take the next events."""
        for event in events:
            key = key_of(event.object)
            earlier = self._events.pop(key, ())
            if not earlier and event.type == "ADDED":
                self._unknown.add(key)
            ends_state = event.type == "DELETED" and key not in self._unknown
            states = [each for each in earlier if ends_state and each.type != "DELETED"]
            self._events[key] = (*states, event)

    def events(self) -> Sequence[WatchEvent[M]]:
        """Return the merged events in the order of revisions."""
        found = [event for events in self._events.values() for event in events]
        return sorted(found, key=lambda event: event.revision)


async def batches(
    kind: Kind[M], to: str, connect: Callable[[], WatchCall]
) -> AsyncGenerator[Sequence[WatchEvent[M]], None]:
    """Open a watch of the process `to` and yield its events; the first batch is empty.

    Raises:
        grpc.aio.AioRpcError: the stream broke.
        StatusError: the server ended the watch with a Status, or the client is closed.
    """
    covered = Call(to, "Watch", kind.group_resource)
    if FAULTS.rules and await task_faults.current().open(covered) == "relist":
        raise _too_old()
    call = connect()
    try:
        with task_faults.current().stream(covered, call.cancel) as stream:
            withheld = MergedEvents[M]()
            while True:
                response: api.WatchResponse | _EOFType | None = None
                if not stream.released:
                    try:
                        response = await await_call(call.read())
                    except (errors.StatusError, grpc.aio.AioRpcError):
                        if not stream.released:
                            raise
                if response is None:  # a rule that withheld events was removed
                    yield withheld.events()
                    raise errors.service_unavailable("the watch is opened again")
                if not isinstance(response, api.WatchResponse):  # the end of the stream
                    return
                verdict = await task_faults.current().message(stream) if FAULTS.rules else "go"
                if verdict == "relist":
                    raise _too_old()
                events, failure = _read(kind, response)
                if verdict == "merge" or stream.merging is not None:
                    withheld.add(events)
                    stream.withheld += len(events)
                elif events or failure is None:
                    yield events
                if failure is not None:
                    raise failure
    finally:
        call.cancel()


def _read(
    kind: Kind[M], response: api.WatchResponse
) -> tuple[list[WatchEvent[M]], errors.StatusError | None]:
    """Return the events of a message, and the Status that ends the watch after them."""
    events: list[WatchEvent[M]] = []
    for event in response.events:
        if event.type == _ERROR:
            return events, errors.StatusError.from_message(meta.Status.FromString(event.error))
        events.append(WatchEvent(_TYPES[event.type], messages.decode(kind, event.body), event.revision))
    return events, None


def _too_old() -> errors.StatusError:
    return errors.expired("fault: the watch is ended; list again")
