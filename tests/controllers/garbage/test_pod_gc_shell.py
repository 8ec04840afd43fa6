"""The pod garbage collector's calls that fail: the other pods have their turn all the same."""

from __future__ import annotations

from nominee.controllers.garbage.shell.pod_gc import PodGarbageCollector
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import FakeClock
from tests.controllers.builders import pod
from tests.controllers.contexts import context_of
from tests.support.fake_api import FakeApi, M


def _collector(api: FakeApi, *pods: core.Pod) -> PodGarbageCollector:
    context = context_of(api, FakeClock())
    for each in pods:
        context.informers.of(kinds.POD)._put(api.put(each))
    return PodGarbageCollector(context, period_seconds=1.0, quarantine_seconds=0.0, ended_pods_max=1)


async def test_a_pod_that_cannot_be_deleted_does_not_keep_the_others() -> None:
    """An ended pod beyond the threshold is first; the pod without a node comes later in the pass."""
    api = FakeApi(rejections={"delete": [errors.service_unavailable("away")]})
    pods = (
        pod("old", uid="1", created=1, phase="Failed"),
        pod("new", uid="2", created=2, phase="Failed"),
        pod("nowhere", uid="3", phase="Failed", deleted=True),
    )
    collector = _collector(api, *pods)
    await collector._collect()
    assert api.find(kinds.POD, "nowhere", "default") is None
    await collector._collect()
    assert api.find(kinds.POD, "old", "default") is None


class _OneSilentNode(FakeApi):
    """An API server that does not answer for one node."""

    async def get(self, kind: Kind[M], name: str, namespace: str = "", **options: object) -> M:
        if name == "silent":
            raise errors.service_unavailable("away")
        return await super().get(kind, name, namespace, **options)


async def test_a_node_that_cannot_be_read_does_not_keep_the_pods_of_others() -> None:
    pods = (pod("kept", uid="1", node="silent"), pod("lost", uid="2", node="zone"))
    api = _OneSilentNode()
    await _collector(api, *pods)._collect()
    assert api.find(kinds.POD, "kept", "default") is not None
    assert api.find(kinds.POD, "lost", "default") is None
