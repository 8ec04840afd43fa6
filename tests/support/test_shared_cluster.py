"""A control plane that one test leaves to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from tests.support.control_plane import NAMES
from tests.support.shared_cluster import Place, SharedCluster


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.discard()


def pids(cluster: SharedCluster) -> list[int]:
    return [cluster.processes[name].pid for name in NAMES]


def node(name: str) -> core.Node:
    made = core.Node()
    made.metadata.name = name
    return made


async def test_the_next_test_has_the_processes_and_nothing_of_the_last_one(place: Place) -> None:
    first = SharedCluster(place)
    await first.start(*NAMES)
    (first.directory / "of-the-test").write_text("x", encoding="utf-8")
    async with first.client() as client:
        for number in range(150):  # more than one transaction of the reset
            await client.create(node(f"node-{number}"))
        await client.patch(kinds.NAMESPACE, "default", "", {"metadata": {"labels": {"a": "b"}}})
        await client.delete(kinds.ENDPOINT_SLICE, "kubernetes", "default")
    before = pids(first)
    first.close()
    assert sorted(path.name for path in place.directory.iterdir() if path.is_file()) == [
        "apiserver.log", "etcd.log", "kubeconfig",
    ]  # fmt: skip
    assert not list((place.directory / "run").glob("*.json")), "no process finds the API server"

    second = SharedCluster(place)
    await second.start(*NAMES)
    assert pids(second) == before
    async with second.client() as client:
        assert not (await client.list(kinds.NODE)).items
        assert "a" not in (await client.get(kinds.NAMESPACE, "default")).metadata.labels
        assert await client.get(kinds.ENDPOINT_SLICE, "kubernetes", "default")
        await client.create(node("node-0"))
    second.close()


def killed(cluster: SharedCluster) -> None:
    cluster.kill("apiserver")


def paused(cluster: SharedCluster) -> None:
    cluster.pause("etcd")


def at_a_failpoint(cluster: SharedCluster) -> None:
    cluster.failpoint("apiserver", "apiserver.storage.write.before", "sleep(1)")


def with_a_fault(cluster: SharedCluster) -> None:
    body = '{"to": "etcd", "method": "LeaseGrant", "action": "cut"}'
    assert cluster.ask("apiserver", "/faults", method="PUT", body=body).status < 300


def at_another_time(cluster: SharedCluster) -> None:
    assert cluster.ask("apiserver", "/clock", method="PUT", body='{"offsetSeconds": 60}').status < 300


@pytest.mark.parametrize("change", [killed, paused, at_a_failpoint, with_a_fault, at_another_time])
async def test_a_control_plane_that_a_test_has_changed_is_not_left(
    place: Place, change: Callable[[SharedCluster], None]
) -> None:
    cluster = SharedCluster(place)
    await cluster.start(*NAMES)
    processes = list(cluster.processes.values())
    change(cluster)
    cluster.close()
    assert place.control_plane is None
    assert all(process.poll() is not None for process in processes)
    assert not list(place.directory.iterdir())


async def test_other_arguments_need_a_control_plane_of_their_own(place: Place) -> None:
    first = SharedCluster(place)
    await first.start(*NAMES)
    before = first.processes["apiserver"]
    first.close()
    second = SharedCluster(place)
    second.arguments("apiserver", "--emulated-version", "1.34")
    await second.start(*NAMES)
    assert before.poll() is not None
    async with second.client() as client:
        assert (await client.server_info()).version == "1.34"
    second.close()
