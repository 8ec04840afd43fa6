"""VolumeBinding beyond the golden verdicts: assuming, telling the provisioner, waiting, giving up."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from nominee.machinery.api import errors, kinds
from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.api.pb import core, storage
from nominee.machinery.runtime.clock import FakeClock
from nominee.machinery.wire import codec
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import Code, FilterError, Status
from nominee.scheduler.framework.scheduling.algorithm import find_feasible
from nominee.scheduler.framework.scheduling.diagnosis import FitError
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.plugins.volume_binding import VolumeBinding
from tests.scheduler.builders import Desk, desk, node, pod
from tests.scheduler.performing import done
from tests.support.fake_api import FakeApi
from tests.support.patience import PATIENCE_SECONDS

SELECTED = "volume.kubernetes.io/selected-node"


def claim(name: str = "data", **annotations: str) -> core.PersistentVolumeClaim:
    return codec.from_json(
        core.PersistentVolumeClaim,
        {
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": f"uid-{name}",
                "annotations": annotations,
            },
            "spec": {
                "storageClassName": "wffc",
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
            "status": {"phase": "Pending"},
        },
    )


def volume(name: str, size: str, on: str = "") -> core.PersistentVolume:
    document: dict[str, Any] = {
        "metadata": {"name": name},
        "spec": {"storageClassName": "wffc", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}},
        "status": {"phase": "Available"},
    }
    if on:
        expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": [on]}
        document["spec"]["nodeAffinity"] = {
            "required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        }
    return codec.from_json(core.PersistentVolume, document)


def waiting_class(provisioner: str = "delayed.nominee.dev") -> storage.StorageClass:
    return storage.StorageClass(
        metadata={"name": "wffc"}, provisioner=provisioner, volumeBindingMode="WaitForFirstConsumer"
    )


def user(name: str = "p", *claims: str) -> PodInfo:
    volumes = [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims or ("data",)]
    return pod(name, volumes=volumes)


class Stage:
    """One cycle of one pod, and an API server."""

    def __init__(self, *objects: Any, timeout: int = 600) -> None:
        self.clock = FakeClock()
        self.pod = user()
        self.api = FakeApi.of(self.pod.pod, node("n1"), node("n2"), *objects)
        self.desk: Desk = desk(
            environment={"client": self.api, "listers": self.api.listers(), "clock": self.clock}
        )
        self.desk.add_nodes(node("n1"), node("n2"))
        self.desk.cache.update_snapshot(self.desk.framework.snapshot)
        plugin = self.desk.framework.plugins["VolumeBinding"]
        assert isinstance(plugin, VolumeBinding)
        plugin._timeout_seconds = float(timeout)
        self.plugin: Any = plugin
        self.state = CycleState()

    def feasible(self, who: PodInfo | None = None) -> list[str]:
        framework = self.desk.framework
        self.state = CycleState()
        search, _ = find_feasible(framework, self.state, who or self.pod, framework.snapshot)
        return sorted(framework.snapshot.nodes[row].name for row in search.rows.tolist())

    def reserve(self, node_name: str, who: PodInfo | None = None) -> None:
        status = self.plugin.reserve(self.state, who or self.pod, node_name)
        assert status is None

    async def pre_bind(self, node_name: str = "n1") -> Status | None:
        work = self.plugin.pre_bind(self.state, self.pod, node_name)
        result: Status | None = await done(self.desk.framework, work)
        return result

    def current(self, name: str = "data") -> core.PersistentVolumeClaim:
        found = self.api.find(kinds.PERSISTENT_VOLUME_CLAIM, name, "default")
        assert found is not None
        copy = core.PersistentVolumeClaim()
        copy.CopyFrom(found)
        return copy

    def provision(self, on: str) -> None:
        """What provisioner and volume controller do."""
        self.api.put(volume("pv-data", "1Gi", on))
        bound = self.current()
        bound.spec.volumeName = "pv-data"
        bound.metadata.annotations["pv.kubernetes.io/bind-completed"] = "yes"
        self.api.put(bound)


def test_a_claim_with_an_invalid_selector_is_an_error_on_every_node() -> None:
    """Validation keeps such claims out; one that gets through must not look like a lack of volumes."""
    odd = claim()
    odd.spec.selector.matchExpressions.add(key="disk", operator="Near", values=["ssd"])
    stage = Stage(odd, waiting_class(), volume("pv", "1Gi"))
    with pytest.raises(FilterError) as failure:
        stage.feasible()
    assert "error creating internal label selector for claim: default/data: " in str(failure.value)


async def finish(stage: Stage, *steps: Any, node_name: str = "n1") -> Status | None:
    """PreBind with steps done while it waits, a minute apart."""
    found: list[Status | None] = []

    async def run() -> None:
        found.append(await stage.pre_bind(node_name))

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            for step in steps:
                await stage.clock.advance(60)
                step()
            while not found:
                await stage.clock.advance(60)
    return found[0]


def test_a_pod_without_claims_has_nothing_to_do() -> None:
    stage = Stage()
    stage.pod = pod("plain")
    assert stage.feasible() == ["n1", "n2"]
    stage.reserve("n1")
    status, _ = stage.plugin.pre_bind_pre_flight(stage.state, stage.pod, "n1")
    assert status.code is Code.Skip


async def test_the_selected_node_is_set_and_provisioning_is_awaited() -> None:
    stage = Stage(claim(), waiting_class())
    assert stage.feasible() == ["n1", "n2"]
    stage.reserve("n1")
    assert stage.plugin.pre_bind_pre_flight(stage.state, stage.pod, "n1") == (None, True)
    assert stage.feasible(user("other")) == ["n1"]  # the claim is assumed to go to n1
    stage = Stage(claim(), waiting_class())
    stage.feasible()
    stage.reserve("n1")
    status = await finish(
        stage,
        lambda: (
            pytest.fail("not selected") if stage.current().metadata.annotations[SELECTED] != "n1" else None
        ),
        lambda: stage.provision("n1"),
    )
    assert status is None
    assert [request[:3] for request in stage.api.requests] == [
        ("update", "PersistentVolumeClaim", "default/data")
    ]


async def test_claims_are_looked_at_each_second_and_first_after_one() -> None:
    stage = Stage(claim(), waiting_class())
    began, ended = stage.clock.monotonic(), list[float]()
    looks: list[float] = []
    real = stage.plugin.binder.claims.real

    def seen(*name: str) -> core.PersistentVolumeClaim | None:
        looks.append(stage.clock.monotonic() - began)
        found: core.PersistentVolumeClaim | None = real(*name)
        return found

    stage.feasible()
    stage.reserve("n1")
    stage.plugin.binder.claims.real = seen

    async def run() -> None:
        assert await stage.pre_bind() is None
        ended.append(stage.clock.monotonic() - began)

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await stage.clock.advance(2.5)
            stage.provision("n1")
            await stage.clock.advance(2.5)
    assert (looks, ended) == ([1.0, 2.0, 3.0], [3.0])


async def test_the_time_runs_out() -> None:
    stage = Stage(claim(), waiting_class(), timeout=90)
    noted: list[Any] = []
    stage.desk.framework.environment.note = lambda *seen: noted.append(seen)
    stage.feasible()
    stage.reserve("n1")
    status = await finish(stage)
    assert status is not None
    assert status.reasons == ("binding volumes: context deadline exceeded",)
    assert noted == [("volume_scheduling_stage_error_total", ("bind",), 1.0)]
    stage.plugin.unreserve(stage.state, stage.pod, "n1")
    assert stage.feasible() == ["n1"]  # the annotation stays and pins the pod


async def test_the_provisioner_gives_up() -> None:
    stage = Stage(claim(), waiting_class())
    stage.feasible()
    stage.reserve("n1")

    def give_up() -> None:
        freed = stage.current()
        del freed.metadata.annotations[SELECTED]
        freed.metadata.annotations["other"] = "x"
        stage.api.put(freed)

    status = await finish(stage, give_up)
    assert status is not None
    assert status.reasons == ('binding volumes: provisioning failed for PVC "data"',)
    assert stage.feasible() == ["n1", "n2"]


async def test_the_node_is_deleted_under_the_pod() -> None:
    stage = Stage(claim(), waiting_class())
    stage.feasible()
    stage.reserve("n1")
    status = await finish(stage, lambda: stage.api.remove(kinds.NODE, "n1"))
    assert status is not None
    assert status.code is Code.Error
    assert status.message() == 'binding volumes: failed to get node "n1": node "n1" not found'


async def test_the_pod_is_deleted_while_it_waits() -> None:
    stage = Stage(claim(), waiting_class())
    stage.feasible()
    stage.reserve("n1")
    status = await finish(stage, lambda: stage.api.remove(kinds.POD, "p"))
    assert status is not None
    assert status.message() == 'binding volumes: pod does not exist any more: pod "p" not found'


@pytest.mark.parametrize(
    ("kind", "name", "error"),
    [
        (kinds.PERSISTENT_VOLUME, "pv", 'failed to check binding: could not find v1.PersistentVolume "pv"'),
        (
            kinds.PERSISTENT_VOLUME_CLAIM,
            "data",
            'failed to check binding: could not find v1.PersistentVolumeClaim "default/data"',
        ),
        (
            kinds.PERSISTENT_VOLUME_CLAIM,
            "second",
            'failed to check provisioning pvc: could not find v1.PersistentVolumeClaim "default/second"',
        ),
    ],
)
async def test_what_is_deleted_during_the_binding_is_named(kind: Any, name: str, error: str) -> None:
    second = claim("second")
    second.spec.resources.requests["storage"].string = "2Gi"
    stage = Stage(claim(), second, waiting_class(), volume("pv", "1Gi"))
    stage.pod = user("p", "data", "second")
    assert stage.feasible() == ["n1", "n2"]
    stage.reserve("n1")

    def delete() -> None:
        if name == "second":
            bound = stage.current()
            bound.spec.volumeName = "pv"
            bound.metadata.annotations["pv.kubernetes.io/bind-completed"] = "yes"
            stage.api.put(bound)
        stage.api.remove(kind, name)

    status = await finish(stage, delete)
    assert status is not None
    assert status.message() == f"binding volumes: {error}"


@pytest.mark.parametrize(
    ("is_first_bound", "reason"),
    [(True, 'provisioning failed for PVC "second"'), (False, "context deadline exceeded")],
)
async def test_a_claim_that_fails_is_noticed_once_those_before_it_are_bound(
    is_first_bound: bool, reason: str
) -> None:
    stage = Stage(claim(), claim("second"), waiting_class(), timeout=90)
    stage.pod = user("p", "data", "second")
    assert stage.feasible() == ["n1", "n2"]
    stage.reserve("n1")

    def give_up() -> None:
        freed = stage.current("second")
        del freed.metadata.annotations[SELECTED]
        freed.metadata.annotations["other"] = "x"
        stage.api.put(freed)
        if is_first_bound:
            stage.provision("n1")

    status = await finish(stage, give_up)
    assert status is not None
    assert status.reasons == (f"binding volumes: {reason}",)


async def test_a_rejected_write_is_forgotten() -> None:
    stage = Stage(claim(), waiting_class())
    stage.feasible()
    stage.reserve("n1")
    stage.api.reject = lambda request: errors.conflict(kinds.PERSISTENT_VOLUME_CLAIM, "data")
    status = await stage.pre_bind()
    assert status is not None
    assert isinstance(status.error, errors.StatusError)
    assert stage.feasible() == ["n1", "n2"]


def test_unreserve_takes_the_assumption_back() -> None:
    stage = Stage(claim(), waiting_class())
    stage.feasible()
    stage.reserve("n1")
    stage.plugin.unreserve(stage.state, stage.pod, "n1")
    stage.plugin.unreserve(stage.state, stage.pod, "n1")
    assert stage.feasible() == ["n1", "n2"]


async def test_a_volume_whose_assumption_is_taken_back_is_unannounced_until_its_next_event() -> None:
    stage = Stage(claim(), waiting_class("kubernetes.io/no-provisioner"), volume("pv", "1Gi"))
    volumes = stage.plugin.binder.volumes
    stage.feasible()
    stage.reserve("n1")
    await stage.clock.advance(5.0)
    assert not volumes.silent_releases()
    stage.plugin.unreserve(stage.state, stage.pod, "n1")
    assert volumes.silent_releases() == {ObjectKey("", "pv"): stage.clock.monotonic()}
    stage.api.put(volume("pv", "2Gi"))
    assert not volumes.silent_releases()


async def test_a_volume_that_was_written_is_announced() -> None:
    stage = Stage(claim(), waiting_class("kubernetes.io/no-provisioner"), volume("pv", "1Gi"), timeout=90)
    stage.feasible()
    stage.reserve("n1")
    await finish(stage)
    stage.plugin.unreserve(stage.state, stage.pod, "n1")
    assert not stage.plugin.binder.volumes.silent_releases()


async def test_the_smallest_volume_that_fits_is_taken_once() -> None:
    stage = Stage(
        claim(), waiting_class("kubernetes.io/no-provisioner"),
        volume("large", "5Gi", "n1"), volume("small", "2Gi", "n1"), volume("tiny", "1Mi", "n2"),
    )  # fmt: skip
    stage.api.put(claim("second"))
    assert stage.feasible() == ["n1"]
    stage.reserve("n1")
    second = user("q", "second")
    first_state, stage.state = stage.state, CycleState()
    assert stage.feasible(second) == ["n1"]
    stage.reserve("n1", second)
    assert [v.metadata.name for v, _ in first_state.read("VolumeBinding").volumes.bindings] == ["small"]
    assert [v.metadata.name for v, _ in stage.state.read("VolumeBinding").volumes.bindings] == ["large"]
    stage.api.put(claim("third"))
    with pytest.raises(FitError):
        stage.feasible(user("r", "third"))
    stage.state = first_state

    def bind_claim() -> None:
        bound = stage.current()
        bound.spec.volumeName = "small"
        bound.metadata.annotations["pv.kubernetes.io/bind-completed"] = "yes"
        stage.api.put(bound)

    assert await finish(stage, bind_claim) is None
    written = stage.api.find(kinds.PERSISTENT_VOLUME, "small")
    assert written is not None
    assert (written.spec.claimRef.name, written.spec.claimRef.uid) == ("data", "uid-data")


def test_two_claims_compete_for_one_volume() -> None:
    stage = Stage(
        claim(), claim("second"), waiting_class("kubernetes.io/no-provisioner"), volume("only", "5Gi")
    )
    with pytest.raises(FitError, match="didn't find available persistent volumes to bind"):
        stage.feasible(user("both", "data", "second"))
    stage.api.put(volume("another", "5Gi", "n2"))
    assert stage.feasible(user("both", "data", "second")) == ["n2"]


def test_allowed_topologies() -> None:
    storage_class = waiting_class()
    term = storage_class.allowedTopologies.add()
    term.matchLabelExpressions.add(key="kubernetes.io/hostname", values=["n2", "n3"])
    stage = Stage(claim(), storage_class)
    assert stage.feasible() == ["n2"]
    assert stage.plugin.filter(stage.state, stage.pod, stage.desk.framework.snapshot.get("n2")) is None
    assert stage.plugin.filter(stage.state, stage.pod, stage.desk.framework.snapshot.get("n1")) is not None
