"""The kubelet: answers that overtake the watch, changes during a write, and what a new process finds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import anyio

from nominee.kubelet.checkpoint import Checkpoint
from nominee.kubelet.instructions import Instruction
from nominee.kubelet.options import Heartbeats
from nominee.kubelet.pod_sync import api_steps
from nominee.kubelet.pods.record import PodRecord
from nominee.kubelet.resources.pod_resources import desired_resources
from nominee.kubelet.runtime import sandbox as runtime
from nominee.kubelet.runtime.emulated_runtime import EmulatedRuntime
from nominee.kubelet.shell.agent import Agent
from nominee.kubelet.shell.checkpoints.checkpoint_file import CheckpointFile
from nominee.kubelet.shell.checkpoints.checkpointer import Checkpointer
from nominee.kubelet.shell.process import Kubelet
from nominee.kubelet.shell.registration import LEASE_NAMESPACE, Registrar
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client
from nominee.machinery.runtime.clock import FakeClock
from tests.support.fake_api import FakeApi


def pod(revision: int = 1, phase: str = "Running") -> core.Pod:
    made = core.Pod()
    made.metadata.name, made.metadata.namespace, made.metadata.uid = "p", "default", "u"
    made.metadata.resourceVersion = str(revision)
    made.status.phase = phase
    made.spec.containers.add(name="c")
    return made


def test_a_status_is_compared_with_the_answer_to_the_last_write() -> None:
    shown, answer = pod(5, "Pending"), pod(7, "Running")
    record = PodRecord(shown, desired_resources(shown))
    api_steps.take_answer(record, answer)
    assert api_steps._newest(record).status.phase == "Running"


async def test_a_checkpoint_has_the_allocations_from_before_its_write_began() -> None:
    allocations = 1
    written = list[int]()

    class File:
        """During the first write another allocation is made."""

        node = "n1"

        def write(self, data: bytes) -> None:
            nonlocal allocations
            written.append(allocations)
            allocations = 2

    checkpointer = Checkpointer(
        cast("CheckpointFile", File()),
        lambda: Checkpoint(node="n1"),
        lambda: allocations,
        anyio.CapacityLimiter(1),
    )
    assert await checkpointer.save_allocations(1) == 1
    assert await checkpointer.save_allocations(2) == 2
    assert written == [1, 2]


async def test_a_lease_that_another_client_changed_is_read_again() -> None:
    class Api(FakeApi):
        """Refuses the update of an older object, as the API server does."""

        async def update(self, obj: Any, **options: Any) -> Any:
            stored = self.find(kinds.LEASE, "n1", LEASE_NAMESPACE)
            assert stored is not None
            if obj.metadata.resourceVersion != stored.metadata.resourceVersion:
                raise StatusError(409, "Conflict", "the object has been modified")
            return await super().update(obj, **options)

    api = Api()
    api.put(core.Node(metadata={"name": "n1", "uid": "n"}))
    registrar = Registrar(
        cast("Client", api), FakeClock(), cast("Any", None), Heartbeats(), node_of=lambda _: None
    )
    agent = cast("Agent", SimpleNamespace(name="n1"))
    await registrar.renew(agent)
    stored = api.find(kinds.LEASE, "n1", LEASE_NAMESPACE)
    assert stored is not None
    api.put(copy_of(stored))  # the renewal whose answer was lost
    failures = 0
    for _ in range(2):
        try:
            await registrar.renew(agent)
        except StatusError:
            failures += 1
    assert failures == 1


def test_changes_that_are_put_back_do_not_replace_newer_ones() -> None:
    pods = SimpleNamespace(get_by_key=lambda _: None)
    kubelet = SimpleNamespace(_inbox={("u", -1): ("n1", None)}, _arrived=anyio.Event(), pods=pods)
    Kubelet._put_back(cast("Kubelet", kubelet), "n1", [("u", pod())])
    assert kubelet._inbox == {("u", -1): ("n1", None)}


def test_a_pod_that_was_removed_in_the_meantime_is_not_put_back() -> None:
    pods = SimpleNamespace(get_by_key=lambda _: None)
    kubelet = SimpleNamespace(_inbox={}, _arrived=anyio.Event(), pods=pods)
    Kubelet._put_back(cast("Kubelet", kubelet), "n1", [("u", pod())])
    assert kubelet._inbox == {("u", -1): ("n1", None)}


def test_a_new_process_keeps_the_containers_of_a_pod_in_its_grace_period() -> None:
    terminating = pod()
    terminating.metadata.deletionTimestamp.seconds = 1
    runs = EmulatedRuntime(sandboxes={"u": runtime.prepare(terminating, now=0.0)})
    agent = SimpleNamespace(
        lost_checkpoint=False,
        adopting=False,
        runtime=runs,
        checkpointer=SimpleNamespace(mark_changed=lambda: None),
        moment=lambda: SimpleNamespace(now=0.0, monotonic=0.0),
        handle=lambda event: list[Instruction](),
    )
    Agent.begin(cast("Agent", agent), [terminating])
    assert list(runs.sandboxes) == ["u"]
