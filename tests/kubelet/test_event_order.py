"""The order in which a kubelet handles what the watch and lists of pods bring."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import anyio
import pytest

from nominee.kubelet.pods.merge_order import merge_order
from nominee.kubelet.pods.record import PodRecord
from nominee.kubelet.resources.pod_resources import desired_resources
from nominee.kubelet.shell.process import Kubelet
from nominee.machinery.api.objects import copy_of, get_condition
from nominee.machinery.api.pb import core
from tests.kubelet.executor import Executor, container, deleted, name, new_pod, node_object, resized, uid


@pytest.mark.parametrize(
    ("order", "phase", "reason"), [(("b", "a"), "Running", "Deferred"), (("a", "b"), "Failed", "")]
)
def test_of_a_resize_and_a_new_pod_the_first_one_takes_the_room(
    order: tuple[str, str], phase: str, reason: str
) -> None:
    """Source: kubelet 1.36, newSourceApiserverFromLW: each event is merged and handled alone."""
    on = Executor(node_object(cpu="2", memory="8Gi", pods="10"))
    on.store(new_pod("a", container("main", cpu="1")))
    on.list_pods()
    on.work()
    on.observe("a")
    on.store(new_pod("b", container("main", cpu="1")))
    on.store(resized(on.api["a"], "main", cpu="2"))
    on.observe(*order)
    on.work()
    pending = get_condition(on.api["a"].status.conditions, "PodResizePending")
    assert (on.api["b"].status.phase, pending.reason if pending else "") == (phase, reason)


@pytest.mark.parametrize(
    ("order", "phase"),
    [(("old", "new"), "Running"), (("new", "old"), "Failed")],
    ids=["first", "afterwards"],
)
def test_a_pod_that_leaves_gives_its_room_to_those_that_come_after_it(
    order: tuple[str, str], phase: str
) -> None:
    on = Executor(node_object(cpu="4", memory="8Gi", pods="10"))
    on.store(new_pod("old", container("main", cpu="3")))
    on.list_pods()
    on.work()
    del on.api["old"]
    on.store(new_pod("new", container("main", cpu="3")))
    on.observe(*order)
    on.work()
    assert on.api["new"].status.phase == phase
    assert on.node.pods[uid("new")].failed is (phase == "Failed")
    assert uid("old") not in on.node.pods


class Inbox:
    """The part of a kubelet that takes the changes of its informer, for pods of one node."""

    def __init__(self, *known: core.Pod) -> None:
        self.pods = SimpleNamespace(replacing=False)
        records = {pod.metadata.uid: PodRecord(pod, desired_resources(pod)) for pod in known}
        self.agents = {"node": SimpleNamespace(node=SimpleNamespace(pods=records))}
        self._inbox: dict[tuple[str, int], tuple[str, core.Pod | None]] = {}
        self._listed: dict[str, dict[str, core.Pod | None]] = {}
        self._arrived = anyio.Event()

    def show(self, pod: core.Pod, *, gone: bool = False) -> None:
        Kubelet._put(cast("Kubelet", self), pod, None if gone else pod)

    def seen(self) -> list[tuple[str, int, str]]:
        Kubelet._list_seen(cast("Kubelet", self))
        return [
            (name(key), generation, pod.status.phase if pod is not None else "gone")
            for (key, generation), (_, pod) in self._inbox.items()
        ]


def at(pod: core.Pod, generation: int = 1, phase: str = "Pending") -> core.Pod:
    made = copy_of(pod)
    made.metadata.generation, made.status.phase, made.spec.nodeName = generation, phase, "node"
    return made


def test_changes_of_a_pod_are_merged_until_it_asks_for_something_else_or_ends() -> None:
    """An addition and a resize are two events: the pod is admitted with what it asked for at first."""
    inbox = Inbox()
    a, b = new_pod("a"), new_pod("b")
    inbox.show(at(a))
    inbox.show(at(b))
    inbox.show(at(a, phase="Running"))
    inbox.show(at(a, 2, "Running"))
    inbox.show(at(b), gone=True)
    inbox.show(at(a, 2, "Failed"))
    assert inbox.seen() == [("a", 1, "Running"), ("b", 1, "Pending"), ("a", 2, "Failed"), ("b", -1, "gone")]


def test_what_a_list_has_changed_is_put_in_the_order_of_a_merge() -> None:
    reconciled, ended, updated = at(new_pod("reconciled")), at(new_pod("ended")), at(new_pod("updated"))
    gone, new = at(new_pod("gone")), at(new_pod("new"))
    inbox = Inbox(reconciled, ended, copy_of(updated), gone)
    inbox.pods.replacing = True
    inbox.show(at(reconciled, phase="Running"))
    inbox.show(deleted(ended))
    updated.metadata.labels["new"] = "label"
    inbox.show(updated)
    inbox.show(new)
    inbox.show(gone, gone=True)
    assert not inbox._arrived.is_set(), "the list is not complete"
    assert [one for one, *_ in inbox.seen()] == ["gone", "new", "updated", "ended", "reconciled"]


def test_pods_that_a_list_shows_for_the_first_time_are_admitted_by_age() -> None:
    old, young = new_pod("z"), new_pod("a")
    old.metadata.creationTimestamp.seconds, young.metadata.creationTimestamp.seconds = 1, 2
    changes = [(uid("a"), young), (uid("z"), old)]
    assert merge_order({}, changes) == changes[::-1]
