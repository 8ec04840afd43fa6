"""Watch events that need another sync of the pod, and those that do not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nominee.kubelet.features import status_features
from nominee.kubelet.pods.last_sync import LastSync
from nominee.kubelet.resources.pod_resources import desired_resources
from nominee.kubelet.runtime import sandbox as runtime
from nominee.kubelet.status.pod_status import View, build
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Gates, Version
from nominee.machinery.wire import codec, presence

NOW = 1_700_000_000.0


def _pod() -> core.Pod:
    pod = core.Pod()
    pod.metadata.name, pod.metadata.uid, pod.metadata.resourceVersion = "a", "uid", "7"
    pod.metadata.generation = 1
    pod.spec.containers.add(name="main", image="pause")
    pod.spec.terminationGracePeriodSeconds = 30
    pod.status.phase = "Pending"
    return pod


def _running(pod: core.Pod) -> core.Pod:
    """The pod with the status that the kubelet decided on, as a watch shows it."""
    shown = core.Pod()
    shown.CopyFrom(pod)
    shown.status.phase = "Running"
    shown.metadata.resourceVersion = "8"
    shown.metadata.managedFields.add(manager="kubelet")
    return shown


def test_a_status_that_comes_back_alone_needs_no_sync() -> None:
    shown = _running(_pod())
    assert LastSync(_pod(), shown.status).covers(shown)


def _delete(pod: core.Pod) -> None:
    pod.metadata.deletionTimestamp.seconds = 1_700_000_030
    pod.metadata.deletionGracePeriodSeconds = 30


def _add_condition(pod: core.Pod) -> None:
    pod.status.conditions.add(type="example.com/gate", status="True")


def _resize(pod: core.Pod) -> None:
    pod.metadata.generation += 1
    pod.spec.containers[0].resources.requests["cpu"].string = "2"


CHANGES: dict[str, Callable[[core.Pod], object]] = {
    "deleted": _delete,
    "generation": lambda pod: setattr(pod.metadata, "generation", 2),
    "resized": _resize,
    "annotated": lambda pod: pod.metadata.annotations.update({"nominee.dev/stop-delay": "1s"}),
    "finalizer": lambda pod: pod.metadata.finalizers.append("example.com/wait"),
    "deadline": lambda pod: setattr(pod.spec, "activeDeadlineSeconds", 5),
    "condition of another writer": _add_condition,
    "status overwritten": lambda pod: setattr(pod.status, "phase", "Pending"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_other_clients_changed_before_the_kubelets_write_needs_a_sync(change: str) -> None:
    wanted = _running(_pod())
    shown = _running(_pod())
    CHANGES[change](shown)
    assert not LastSync(_pod(), wanted.status).covers(shown)


def test_a_shorter_grace_period_needs_a_sync() -> None:
    deleted = _running(_pod())
    _delete(deleted)
    shorter = _running(deleted)
    shorter.metadata.deletionGracePeriodSeconds = 1
    assert LastSync(deleted, deleted.status).covers(deleted)
    assert not LastSync(deleted, deleted.status).covers(shorter)


def test_an_event_during_a_sync_that_has_decided_nothing_needs_another() -> None:
    assert not LastSync(_pod()).covers(_pod())


def test_the_status_that_a_sync_decides_is_equal_to_the_one_that_the_api_server_stores() -> None:
    """Else each of the kubelet's own writes would cost one more pass."""
    pod = _pod()
    sandbox = runtime.start(runtime.prepare(pod, now=NOW), desired_resources(pod), ip="10.0.0.2", now=NOW)
    view = View(pod=pod, host_ip="172.16.0.1", now=NOW, sandbox=runtime.become_ready(sandbox))
    decided = build(view, status_features(Version(1, 36), Gates("kubelet")))
    presence.fill(decided)
    shown = _pod()
    shown.status.CopyFrom(codec.from_json(core.PodStatus, codec.to_json(decided)))
    presence.fill(shown.status)
    assert LastSync(pod, decided).covers(shown)
