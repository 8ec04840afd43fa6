"""ReplicationControllers: the ReplicaSet's controller acts on them, with names of their own."""

from __future__ import annotations

from typing import cast

from nominee.controllers.replica_sets.shell.replica_sets import ReplicationControllerController
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.objects import controller_of
from nominee.machinery.api.pb import apps, core
from nominee.machinery.runtime.clock import FakeClock
from tests.controllers.builders import pod
from tests.controllers.contexts import context_of, synced
from tests.support.fake_api import FakeApi


def replication_controller(replicas: int) -> core.ReplicationController:
    """Return one whose pods have the label app=web."""
    found = core.ReplicationController()
    found.metadata.name, found.metadata.namespace, found.metadata.uid = "web", "default", "uid-rc"
    found.metadata.generation = 1
    found.spec.replicas = replicas
    found.spec.selector["app"] = "web"
    found.spec.template.metadata.labels["app"] = "web"
    found.spec.template.spec.containers.add(name="c", image="pause")
    return found


async def test_pods_are_created_adopted_counted_and_deleted() -> None:
    api = FakeApi.of(replication_controller(2), pod("orphan", labels={"app": "web"}))
    context = context_of(api, FakeClock())
    controller = ReplicationControllerController(context)

    def stored() -> core.ReplicationController:
        found = api.find(kinds.REPLICATION_CONTROLLER, "web", "default")
        assert found is not None
        return found

    async with synced(context, controller.run, context.recorders.run):
        await api.until(lambda: stored().status.replicas == 2)
        owners = [controller_of(each) for each in api.all_of(kinds.POD)]
        assert {(o.kind, o.apiVersion, o.uid) for o in owners if o} == {
            ("ReplicationController", "v1", "uid-rc")
        }
        assert {each.metadata.name for each in api.all_of(kinds.POD)} > {"orphan"}
        assert (stored().status.fullyLabeledReplicas, stored().status.observedGeneration) == (2, 1)
        await api.until(lambda: "SuccessfulCreate" in {reason for reason, _, _ in api.events})
        smaller = stored()
        smaller.spec.replicas = 0
        api.put(smaller)
        await api.until(lambda: not api.all_of(kinds.POD))


async def test_pods_that_cannot_be_created_set_a_condition() -> None:
    api = FakeApi.of(replication_controller(1))
    api.reject = lambda request: errors.bad_request("no") if request.verb == "create" else None
    context = context_of(api, FakeClock())
    controller = ReplicationControllerController(context)
    async with synced(context, controller.run):
        await api.until(lambda: bool(api.all_of(kinds.REPLICATION_CONTROLLER)[0].status.conditions))
    (failure,) = api.all_of(kinds.REPLICATION_CONTROLLER)[0].status.conditions
    assert (failure.type, failure.reason, failure.message) == ("ReplicaFailure", "FailedCreate", "no")


async def test_one_has_no_related_pods_even_with_a_controller() -> None:
    controller = ReplicationControllerController(context_of(FakeApi(), FakeClock()))
    found = replication_controller(1)
    found.metadata.ownerReferences.add(kind="Owner", name="web", uid="d", controller=True)
    controller.owners._put(cast("apps.ReplicaSet", found))
    assert list(controller.sets_of_controller(cast("apps.ReplicaSet", found))) == []
