"""Kill -9 of etcd under writes: nothing acknowledged is lost, and watches go on."""

from __future__ import annotations

from dataclasses import dataclass, field

import anyio
import pytest

from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client, retry_unavailable
from tests.apiserver.cache.test_watch_cache import pod
from tests.apiserver.fronts.test_grpc_front import serving
from tests.support.etcd import ThrowawayEtcd, skip_if_etcd_loses_writes
from tests.support.patience import PATIENCE_SECONDS

WRITERS = 8
WRITES_BETWEEN_KILLS = 150
KILLS = 4
LIMIT_SECONDS = PATIENCE_SECONDS


@dataclass
class Seen:
    """The events that a watcher received: each object's revisions in order."""

    events: int = 0
    newest: dict[str, int] = field(default_factory=dict)
    present: dict[str, str] = field(default_factory=dict)
    disorder: list[str] = field(default_factory=list)
    last_revision: int = 0
    _changed: anyio.Event = field(default_factory=anyio.Event)

    def restart(self, listed: dict[str, core.Pod], revision: int) -> None:
        """Begin again with a list, which must not be older than what was seen."""
        if revision < self.last_revision:
            self.disorder.append(f"a list at {revision} after {self.last_revision}")
        self.last_revision = revision
        self.newest = {name: int(obj.metadata.resourceVersion) for name, obj in listed.items()}
        self.present = {name: obj.metadata.labels.get("n", "") for name, obj in listed.items()}
        self._changed.set()
        self._changed = anyio.Event()

    async def reach(self, revision: int) -> None:
        while self.last_revision < revision:
            await self._changed.wait()

    def note(self, event_type: str, obj: core.Pod, revision: int) -> None:
        self.events += 1
        self._changed.set()
        self._changed = anyio.Event()
        if event_type == "BOOKMARK":
            return
        name = obj.metadata.name
        if revision <= self.newest.get(name, 0) or revision < self.last_revision:
            self.disorder.append(f"{name}: {revision} after {self.newest.get(name)}, {self.last_revision}")
        self.last_revision = revision
        self.newest[name] = revision
        if event_type == "DELETED":
            self.present.pop(name, None)
        else:
            self.present[name] = obj.metadata.labels.get("n", "")


@dataclass
class Ledger:
    """What is known to be stored: each object's number, acknowledged or read after a write without answer."""

    numbers: dict[str, int] = field(default_factory=dict)
    writes: int = 0
    _changed: anyio.Event = field(default_factory=anyio.Event)

    def learn(self, name: str, number: int) -> None:
        """Record a number that a read returned: a write whose response was lost succeeded after all."""
        self.numbers[name] = number

    def acknowledge(self, name: str, number: int) -> None:
        self.numbers[name] = number
        self.writes += 1
        self._changed.set()
        self._changed = anyio.Event()

    async def reach(self, writes: int) -> None:
        while self.writes < writes:
            await self._changed.wait()


async def write(client: Client, name: str, ledger: Ledger, stop: anyio.Event) -> None:
    """Create an object and count its label up, one write after the other, noting what is acknowledged.

    A write without an answer may have been carried out: the object is read to know.
    """
    current: core.Pod | None = None
    number = 0
    while not stop.is_set():
        try:
            if current is None:
                current = await client.create(pod(name, n="0"))
            else:
                wanted = core.Pod()
                wanted.CopyFrom(current)
                wanted.metadata.labels["n"] = str(number + 1)
                current = await client.update(wanted)
                number += 1
        except StatusError as error:
            if errors.is_conflict(error) or errors.is_already_exists(error) or errors.is_retryable(error):
                current = await read_again(client, name)
                found = int(current.metadata.labels["n"]) if current is not None else 0
                # Lost is what goes back; one further is the write whose answer was lost.
                assert found in (number, number + 1), f"{name} is at {found}, acknowledged was {number}"
                number = found
                if current is not None:
                    ledger.learn(name, number)
                continue
            raise
        ledger.acknowledge(name, number)


async def read_again(client: Client, name: str) -> core.Pod | None:
    try:
        return await retry_unavailable(lambda: client.get(kinds.POD, name, "default"), attempts_max=30)
    except StatusError as error:
        if errors.is_not_found(error):
            return None
        raise


async def follow(client: Client, seen: Seen, started: anyio.Event) -> None:
    """One watch from the beginning that must never end."""
    async for batch in client.watch_batches(kinds.POD, resource_version=""):
        started.set()
        for event in batch:
            seen.note(event.type, event.object, event.revision)
    raise AssertionError("the watch ended")


@pytest.mark.chaos
async def test_nothing_acknowledged_is_lost_and_watches_go_on(own_etcd: ThrowawayEtcd) -> None:
    skip_if_etcd_loses_writes()
    await kill_etcd_under_writes(own_etcd)


async def kill_etcd_under_writes(own_etcd: ThrowawayEtcd) -> None:
    ledger, seen, stop = Ledger(), Seen(), anyio.Event()
    async with serving(own_etcd) as running:
        with anyio.fail_after(LIMIT_SECONDS):
            async with anyio.create_task_group() as group:
                started = anyio.Event()
                group.start_soon(follow, running.client, seen, started)
                await started.wait()
                async with anyio.create_task_group() as writers:
                    for number in range(WRITERS):
                        writers.start_soon(write, running.client, f"w{number}", ledger, stop)
                    for _ in range(KILLS):
                        await ledger.reach(ledger.writes + WRITES_BETWEEN_KILLS)
                        own_etcd.kill()
                        await anyio.to_thread.run_sync(own_etcd.start)
                    stop.set()
                listed = await running.client.list(kinds.POD)
                await seen.reach(int(listed.resource_version))
                group.cancel_scope.cancel()
    assert ledger.writes >= KILLS * WRITES_BETWEEN_KILLS
    stored = {p.metadata.name: p.metadata.labels["n"] for p in listed.items}
    assert stored == {name: str(number) for name, number in ledger.numbers.items()}
    assert seen.disorder == []
    assert seen.present == stored
