"""The replica set controller over a fake API server."""

from __future__ import annotations

from nominee.controllers.replica_sets.shell.replica_sets import ReplicaSetController
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.objects import key_of
from nominee.machinery.runtime.clock import FakeClock
from nominee.machinery.wire.values.scalars import Json
from tests.controllers.builders import owned_by, pod, replica_set
from tests.controllers.contexts import context_of
from tests.support.fake_api import FakeApi, M


async def test_pods_that_the_watch_shows_during_a_reconciliation_are_not_created_again() -> None:
    web = replica_set(replicas=1, uid="s")
    released = pod("released", uid="r", labels={"app": "other"}, owners=[owned_by("s")])
    created = pod("created", uid="c", labels={"app": "web"}, owners=[owned_by("s")])

    class Api(FakeApi):
        async def patch(
            self, kind: Kind[M], name: str, namespace: str, patch: Json, *, subresource: str = "", **_: object
        ) -> M:
            pods._put(created)
            controller._pod_added(created)
            return await super().patch(kind, name, namespace, patch)

    api = Api()
    for each in (web, released, created):
        api.put(each)
    context = context_of(api, FakeClock())
    controller = ReplicaSetController(context)
    pods = context.informers.of(kinds.POD)
    controller.sets._put(web)
    pods._put(released)
    controller._expected.expect(key_of(web), 0.0, created="c")
    await controller.reconcile(key_of(web))
    assert controller._expected.satisfied(key_of(web), 0.0)
    assert {each.metadata.name for each in api.all_of(kinds.POD)} == {"released", "created"}
