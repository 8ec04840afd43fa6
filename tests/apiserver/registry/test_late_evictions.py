"""An eviction that waits for other writers has the time of its writes, not that of its begin."""

from __future__ import annotations

import random

from nominee.apiserver.admission.chain import NAMES
from nominee.apiserver.objects.requests import Act, WriteOptions
from nominee.apiserver.registry.pods.eviction import RETRY_SECONDS
from nominee.apiserver.registry.registry import Registry
from nominee.apiserver.storage.interface import RevisionMismatch
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import get_condition
from nominee.machinery.api.pb import core, policy
from nominee.machinery.features.gates import Gates
from nominee.machinery.wire import envelope
from tests.apiserver.registry.memory_storage import MemoryStorage
from tests.apiserver.registry.rules_player import NAMESPACE, VERSION, QuickClock

CONFLICTS = 6
_BUDGETS = kinds.POD_DISRUPTION_BUDGET.key_prefix(NAMESPACE)


class Contended(MemoryStorage):
    """Storage in which other clients write the budgets just before the first updates of them."""

    def __init__(self) -> None:
        super().__init__()
        self.conflicts = CONFLICTS

    async def update(self, key: str, data: bytes, *, expected_revision: int, lease_seconds: int = 0) -> int:
        if key.startswith(_BUDGETS) and self.conflicts:
            self.conflicts -= 1
            self._put(key, self.values[key].data)
            raise RevisionMismatch(key, expected_revision, self.values[key])
        return await super().update(key, data, expected_revision=expected_revision)

    def put(self, obj: core.Pod | policy.PodDisruptionBudget) -> None:
        self._put(kinds.of(obj).key(obj.metadata.namespace, obj.metadata.name), envelope.encode(obj))

    def budget(self) -> policy.PodDisruptionBudget:
        return envelope.decode(kinds.POD_DISRUPTION_BUDGET, self.values[f"{_BUDGETS}web"].data)

    def pod(self) -> core.Pod:
        return envelope.decode(kinds.POD, self.values[kinds.POD.key(NAMESPACE, "a")].data)


def ready_pod() -> core.Pod:
    pod = core.Pod()
    pod.metadata.name, pod.metadata.namespace, pod.metadata.uid = "a", NAMESPACE, "1"
    pod.metadata.labels["app"] = "web"
    pod.spec.nodeName, pod.spec.terminationGracePeriodSeconds = "node-0", 30
    pod.status.phase = "Running"
    pod.status.conditions.add(type="Ready", status="True")
    return pod


def budget_of_one(now: float) -> policy.PodDisruptionBudget:
    """Return a budget that allows one disruption, since this time."""
    budget = policy.PodDisruptionBudget()
    budget.metadata.name, budget.metadata.namespace, budget.metadata.uid = "web", NAMESPACE, "2"
    budget.spec.selector.matchLabels["app"] = "web"
    budget.status.disruptionsAllowed = budget.status.currentHealthy = 1
    allowed = budget.status.conditions.add(type="DisruptionAllowed", status="True")
    allowed.lastTransitionTime.seconds = int(now)
    return budget


async def test_each_attempt_has_its_own_time() -> None:
    clock, storage = QuickClock(), Contended()
    began = clock.now()
    storage.put(ready_pod())
    storage.put(budget_of_one(began))
    registry = Registry(
        storage,
        None,
        None,
        gates=Gates("apiserver", VERSION, {}),
        clock=clock,
        rng=random.Random(1),
        disabled_admission=NAMES,
    )
    eviction = policy.Eviction()
    eviction.metadata.name, eviction.metadata.namespace = "a", NAMESPACE
    await registry.perform(Act(kinds.POD, NAMESPACE, "a", "eviction", eviction, WriteOptions()))
    decided = int(began + CONFLICTS * RETRY_SECONDS)
    refused = get_condition(storage.budget().status.conditions, "DisruptionAllowed")
    assert refused is not None
    assert (refused.status, refused.lastTransitionTime.seconds) == ("False", decided)
    assert storage.budget().status.disruptedPods["a"].seconds == decided
    target = get_condition(storage.pod().status.conditions, "DisruptionTarget")
    assert target is not None
    assert target.lastTransitionTime.seconds == decided
    assert storage.pod().metadata.deletionTimestamp.seconds == decided + 30
