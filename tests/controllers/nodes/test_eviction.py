"""The controller of evictions by NoExecute taints, without its queue."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nominee.controllers.nodes.shell.eviction import TaintEviction
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import key_of
from nominee.machinery.features.gates import DEFAULT, Gates
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


@pytest.mark.parametrize("gate", [True, False])
async def test_with_the_gate_a_toleration_compares_values(gate: bool) -> None:
    """Source: KEP-5471; kube-controller-manager 1.36, processPodOnNode."""
    gates = Gates("controllers", DEFAULT, {"TaintTolerationComparisonOperators": gate})
    api = FakeApi()
    context = replace(context_of(api, FakeClock()), gates=gates)
    pods, nodes = context.informers.of(kinds.POD), context.informers.of(kinds.NODE)
    tolerates = {"key": "sla", "operator": "Gt", "value": "900", "effect": "NoExecute"}
    stays = pod(uid="u", node="n1", tolerations=[tolerates])
    api.put(stays)
    pods._put(stays)
    nodes._put(node(taints=[{"key": "sla", "value": "950", "effect": "NoExecute"}]))
    await TaintEviction(context, pods).reconcile(key_of(stays))
    assert (api.find(kinds.POD, "p", "default") is not None) is gate
