"""The controller of evictions by NoExecute taints, without its queue."""

from __future__ import annotations

import pytest

from nominee.controllers.nodes.shell.eviction import TaintEviction
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import key_of
from nominee.machinery.runtime.clock import FakeClock
from tests.controllers.builders import node, pod
from tests.controllers.contexts import context_of
from tests.support.fake_api import FakeApi

SILENT = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
TOLERATION = {**SILENT, "operator": "Exists", "tolerationSeconds": 300}


async def test_the_time_of_a_pod_that_terminates_is_forgotten() -> None:
    context = context_of(FakeApi(), FakeClock())
    pods, nodes = context.informers.of(kinds.POD), context.informers.of(kinds.NODE)
    stays = pod(uid="u", node="n1", tolerations=[TOLERATION])
    pods._put(stays)
    controller, key = TaintEviction(context, pods), key_of(stays)
    nodes._put(node(taints=[SILENT]))
    assert await controller.reconcile(key) == pytest.approx(300.0)
    pods._put(pod(uid="u", node="n1", tolerations=[TOLERATION], deleted=True))
    assert await controller.reconcile(key) is None
    assert controller._due == {}
