"""The events of the disruption controller: one for each new status."""

from __future__ import annotations

from typing import Any, cast

import pytest

from nominee.controllers.disruption.shell.disruption import Disruption
from nominee.controllers.shell.controller import Context
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.objects import ObjectKey, key_of
from nominee.machinery.api.pb import apps, core, policy
from nominee.machinery.runtime.clock import FakeClock
from nominee.machinery.wire import codec
from tests.controllers.builders import owned_by, pod, replica_set
from tests.controllers.contexts import context_of, synced
from tests.support.fake_api import FakeApi

KEY = ObjectKey("default", "budget")


class FakeInformer:
    """Stands in for an informer."""

    def __init__(self) -> None:
        self.objects: dict[ObjectKey, Any] = {}

    def add_handler(self, **_: Any) -> None:
        return

    def on_change(self, *_: Any, **__: Any) -> None:
        return

    def get(self, name: str, namespace: str) -> Any:
        return self.objects.get(ObjectKey(namespace, name))

    def by_index(self, index: str, namespace: str) -> list[Any]:
        assert index == "namespace"
        return self.list(namespace)

    def list(self, namespace: str) -> list[Any]:
        return [obj for key, obj in self.objects.items() if key.namespace == namespace]


class World:
    """Stands in for the client, the informers, the recorder and the log."""

    def __init__(self) -> None:
        self.known: dict[Kind[Any], FakeInformer] = {}
        self.reasons: list[str] = []
        self.conflicts = 0

    def of(self, what: Any) -> Any:
        return self.known.setdefault(what, FakeInformer()) if isinstance(what, Kind) else self

    def bind(self, **_: Any) -> World:
        return self

    def event(self, about: Any, type_: str, reason: str, **_: Any) -> None:
        self.reasons.append(reason)

    async def update(self, obj: Any, *, subresource: str) -> Any:
        if self.conflicts:
            self.conflicts -= 1
            raise errors.conflict(kinds.of(obj), obj.metadata.name, "changed")
        self.put(obj)
        return obj

    def put(self, obj: Any) -> None:
        self.of(kinds.of(obj)).objects[key_of(obj)] = obj


@pytest.fixture
def world() -> World:
    found = World()
    spec = {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 1}
    body = {"metadata": {"name": "budget", "namespace": "default", "generation": 1}, "spec": spec}
    found.put(codec.from_json(policy.PodDisruptionBudget, body))
    return found


def controller(world: World) -> Disruption:
    same: Any = world
    context = Context(
        client=same, informers=same, clock=FakeClock(), recorders=same, gates=cast("Any", None), log=same
    )
    return Disruption(context)


async def test_a_budget_without_pods_has_one_event(world: World) -> None:
    it = controller(world)
    await it.reconcile(KEY)
    await it.reconcile(KEY)  # as its own write makes it
    assert world.reasons == ["NoPods"]
    world.put(pod("p", labels={"app": "web"}, ready=True))
    await it.reconcile(KEY)
    assert world.reasons == ["NoPods"]
    world.of(kinds.POD).objects.clear()
    await it.reconcile(KEY)
    await it.reconcile(KEY)
    assert world.reasons == ["NoPods", "NoPods"], "the pods were created and deleted"


async def test_a_status_that_was_not_written_has_no_event(world: World) -> None:
    it = controller(world)
    world.conflicts = 1
    with pytest.raises(StatusError):
        await it.reconcile(KEY)
    assert world.reasons == []
    await it.reconcile(KEY)
    assert world.reasons == ["NoPods"]


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        (apps.ReplicaSet(), 5),
        (apps.StatefulSet(), 5),
        (core.ReplicationController(), 5),
        (apps.DaemonSet(), 0),
    ],
    ids=["replica set", "stateful set", "replication controller", "daemon set"],
)
async def test_the_replicas_of_controllers_are_expected(world: World, owner: Any, expected: int) -> None:
    """Source: pkg/controller/disruption (finders): a DaemonSet has no scale."""
    owner.metadata.name, owner.metadata.namespace, owner.metadata.uid = "web", "default", "set"
    if expected:
        owner.spec.replicas = expected
    world.put(owner)
    world.put(pod("p", labels={"app": "web"}, owners=[owned_by("set", kind=type(owner).__name__)], uid="p"))
    (budget,) = world.of(kinds.POD_DISRUPTION_BUDGET).objects.values()
    budget.spec.ClearField("minAvailable")
    budget.spec.maxUnavailable.intVal = 1
    await controller(world).reconcile(KEY)
    assert world.of(kinds.POD_DISRUPTION_BUDGET).objects[KEY].status.expectedPods == expected


@pytest.mark.parametrize(
    ("owner", "expected"), [("Deployment", 4), ("Rollout", 6)], ids=["deployment", "another kind"]
)
async def test_the_replicas_of_a_deployment_are_expected_and_not_those_of_its_replica_sets(
    world: World, owner: str, expected: int
) -> None:
    """Source: pkg/controller/disruption (getPodDeployment, getPodReplicaSet)."""
    deployment = apps.Deployment()
    deployment.metadata.name, deployment.metadata.namespace = "web", "default"
    deployment.metadata.uid, deployment.spec.replicas = "deployment", 4
    world.put(deployment)
    for name, replicas in (("old", 4), ("new", 2)):
        one = replica_set(name, uid=name, replicas=replicas)
        one.metadata.ownerReferences.add(kind=owner, name="web", uid="deployment", controller=True)
        world.put(one)
        owners = [owned_by(name, name=name)]
        world.put(pod(name, labels={"app": "web"}, owners=owners, uid=f"pod-{name}"))
    (budget,) = world.of(kinds.POD_DISRUPTION_BUDGET).objects.values()
    budget.spec.ClearField("minAvailable")
    budget.spec.maxUnavailable.intVal = 1
    await controller(world).reconcile(KEY)
    assert world.of(kinds.POD_DISRUPTION_BUDGET).objects[KEY].status.expectedPods == expected


@pytest.mark.parametrize("is_adopted", [True, False], ids=["adopted", "created"])
async def test_a_controller_that_is_shown_after_its_pods_is_counted(is_adopted: bool) -> None:
    """A Deployment adopts a ReplicaSet, or the watch of ReplicaSets is late: no event of a pod follows."""
    budget = codec.from_json(
        policy.PodDisruptionBudget,
        {
            "metadata": {"name": "budget", "namespace": "default", "generation": 1},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1},
        },
    )
    owned = replica_set("old", uid="set", replicas=1)
    deployment = apps.Deployment()
    deployment.metadata.name, deployment.metadata.namespace = "web", "default"
    deployment.metadata.uid, deployment.spec.replicas = "deployment", 3
    owners = [owned_by("set", name="old")]
    api = FakeApi.of(budget, deployment, pod("p", labels={"app": "web"}, owners=owners, uid="p", ready=True))
    if is_adopted:
        api.put(owned)
    clock = FakeClock()
    context = context_of(api, clock)
    it = Disruption(context)
    async with synced(context, it.run):
        await clock.settle()
        (before,) = api.all_of(kinds.POD_DISRUPTION_BUDGET)
        assert before.status.expectedPods == int(is_adopted)
        owned.metadata.ownerReferences.add(kind="Deployment", name="web", uid="deployment", controller=True)
        api.put(owned)
        await clock.settle()
        (after,) = api.all_of(kinds.POD_DISRUPTION_BUDGET)
        assert (after.status.expectedPods, after.status.currentHealthy) == (3, 1)
