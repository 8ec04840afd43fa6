"""etcd's watch over all keys, as batches of changes in revision order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass

import anyio.lowlevel
import grpc.aio
from aetcd import rpc

from nominee.apiserver.storage.channel import ETCD, REQUIRE_LEADER, translate
from nominee.apiserver.storage.interface import Compacted, StorageUnavailable
from nominee.machinery.api.errors import FailpointError, StatusError
from nominee.machinery.runtime import failpoints, task_faults
from nominee.machinery.runtime.faults.call_faults import FAULTS, Call

# All keys: a reader that waits for a revision must see it, also when the write was of another client's key.
_ALL = b"\x00"
_WATCH = Call(ETCD, "Watch")
RECEIVED = failpoints.declare(
    "apiserver.storage.watch", "events are received from etcd; the watch cache does not have them yet"
)
"""Events are received from etcd; the watch cache does not have them yet."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one key; for a deletion `data` is None and `revision` is the deletion's."""

    key: str
    data: bytes | None
    revision: int


def _changes(answer: rpc.WatchResponse) -> list[Change]:
    return [
        Change(
            event.kv.key.decode("utf-8", "replace"),
            None if event.type == rpc.Event.DELETE else event.kv.value,
            event.kv.mod_revision,
        )
        for event in answer.events
    ]


async def watch(channel: grpc.aio.Channel, start_revision: int) -> AsyncGenerator[list[Change], None]:
    """Yield all changes from `start_revision` on; first an empty batch when the watch is established.

    It never ends by itself. Only revisions of changes count: a progress notification, and the header's
    revision with it, may overtake changes that are still to come (etcd-io/etcd#15220).

    Raises: Compacted when etcd has dropped `start_revision`, StorageUnavailable when the stream breaks.
    """
    call = None
    try:
        if FAULTS.rules and await task_faults.current().open(_WATCH) == "relist":
            raise Compacted(start_revision, start_revision)
        call = rpc.WatchStub(channel).Watch(metadata=REQUIRE_LEADER)
        request = rpc.WatchCreateRequest(key=_ALL, range_end=_ALL, start_revision=start_revision)
        await call.write(rpc.WatchRequest(create_request=request))
        with task_faults.current().stream(_WATCH, call.cancel) as stream:
            while True:
                answer = await call.read()
                if FAULTS.rules and await task_faults.current().message(stream) == "relist":
                    raise Compacted(start_revision, start_revision)
                if answer is grpc.aio.EOF:
                    raise StorageUnavailable("etcd ended the watch")
                _check(answer, start_revision)
                if answer.created or answer.events:
                    await RECEIVED.hit(revision=answer.header.revision)
                    yield _changes(answer)
    except grpc.aio.AioRpcError as error:
        raise translate(error, start_revision) from error
    except (FailpointError, StatusError) as error:
        raise StorageUnavailable(f"etcd watch: {error}") from None
    except asyncio.InvalidStateError as error:
        # grpc raises it for a write on a call that has failed already.
        raise StorageUnavailable(f"etcd watch: {error}") from error
    except asyncio.CancelledError:
        await anyio.lowlevel.checkpoint_if_cancelled()
        raise StorageUnavailable("etcd's watch was cancelled") from None
    finally:
        if call is not None:
            call.cancel()


def _check(answer: rpc.WatchResponse, start_revision: int) -> None:
    """Raise the error of a message that ends the watch."""
    if answer.canceled:
        if answer.compact_revision:
            raise Compacted(start_revision, answer.compact_revision)
        raise StorageUnavailable(f"etcd cancelled the watch: {answer.cancel_reason}")
