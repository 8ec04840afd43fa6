"""What a simulated process holds is counted: its tasks, its open calls, the entries of its containers."""

from __future__ import annotations

import json
import types
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from nominee.machinery.api import kinds
from nominee.simulation import memory
from nominee.simulation.simulation import Simulation
from tests.simulation import cluster


@dataclass(slots=True)
class Kept:
    """An object of the product with containers, one of which is of an ignored name."""

    waiting: dict[str, object] = field(default_factory=dict)
    _private: list[int] = field(default_factory=list)


Kept.__module__ = "nominee.kubelet.example"
KEPT, PRIVATE = "Kept.waiting", "Kept._private"


@types.coroutine
def pause() -> Iterator[None]:
    yield


async def hold(kept: object) -> object:
    await pause()
    return kept


def entries_of(*kept: object) -> dict[str, int]:
    async def root() -> None:
        await hold(kept)

    coroutine = root()
    coroutine.send(None)
    found = memory.entries([coroutine])
    coroutine.close()
    return found


@pytest.mark.parametrize(
    ("kept", "count"),
    [
        ((Kept(),), 0),
        ((Kept({"a": 1, "b": 2}),), 2),
        (([Kept({"a": 1})], {"k": Kept({"b": 2})}), 2),
        ((Kept({"inner": Kept({"a": 1})}),), 2),
    ],
    ids=["empty", "two", "within containers", "nested"],
)
def test_entries_are_counted_wherever_a_task_can_reach_them(kept: tuple[object, ...], count: int) -> None:
    assert entries_of(*kept)[KEPT] == count


def test_one_object_counts_once() -> None:
    kept = Kept({"a": 1})
    assert entries_of(kept, [kept])[KEPT] == 1


def test_a_closure_is_followed() -> None:
    kept = Kept({"a": 1})
    assert entries_of(lambda: kept)[KEPT] == 1


def test_ignored_containers_are_followed_and_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_IGNORED", ("nominee.kubelet.example.Kept.waiting.",))
    found = entries_of(Kept({"inner": Kept(_private=[1, 2])}))
    assert (KEPT in found, found[PRIVATE]) == (False, 2)


def test_a_process_holds_its_own_tasks_and_calls() -> None:
    simulation = Simulation(1)

    async def scheduler() -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = json.loads(
            (await simulation.processes["scheduler"].get(memory.PATH)).body
        )
        return found

    async def story() -> tuple[dict[str, dict[str, int]], dict[str, dict[str, int]]]:
        client = await cluster.start(simulation)
        watching = client.watch_batches(kinds.POD, resource_version="0")
        await anext(watching)
        before = await scheduler()
        await cluster.create_pods(client, 1, cpu="999")
        await simulation.clock.sleep(1.0)
        return before, await scheduler()

    before, after = simulation.run(story)
    assert before["calls"] == {"Watch": before["tasks"]["Informer.run"]}
    assert after["calls"] == {**before["calls"], "Calls": 1}
    assert after["tasks"].keys() - before["tasks"].keys() == {"_CallStream._run", "_CallStream._write"}
    assert after["entries"] == {}, "the scheduler's containers depend on what was done before"


def test_a_pod_is_an_entry_of_its_kubelet() -> None:
    simulation = Simulation(1)

    async def kubelet() -> dict[str, int]:
        found: dict[str, dict[str, int]] = json.loads(
            (await simulation.processes["kubelet-0"].get(memory.PATH)).body
        )
        return found["entries"]

    async def story() -> tuple[dict[str, int], dict[str, int]]:
        client = await cluster.start(simulation)
        before = await kubelet()
        await cluster.create_pods(client, 1, cpu="1")
        await simulation.clock.sleep(10.0)
        return before, await kubelet()

    before, after = simulation.run(story)
    more = {name: count - before.get(name, 0) for name, count in after.items()}
    assert (more["NodeState.pods"], more["NodeState.allocations"]) == (1, 1)
