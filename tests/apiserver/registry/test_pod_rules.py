"""The rules of pods beyond the golden sample, on a real etcd; and those that need an odd storage or clock."""

from __future__ import annotations

import pytest

from nominee.apiserver.objects.requests import Act, Create, Delete, Update
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import core, meta, policy
from nominee.machinery.wire import codec, envelope
from tests.apiserver.cache.test_watch_cache import running
from tests.apiserver.registry.rule_cases import CASES, PENDING, RUNNING, bind, budget, evict
from tests.apiserver.registry.rules_player import Meddled, Player, QuickClock, registry_of
from tests.support.etcd import ThrowawayEtcd


async def test_every_rule_holds(etcd: ThrowawayEtcd) -> None:
    failed: dict[str, list[str]] = {}
    async with running(etcd) as bench:
        for case in CASES:
            differences = await Player(bench, case).play()
            if differences:
                failed[case["id"]] = differences
    assert not failed, "\n".join(f"{name}: {'; '.join(found)}" for name, found in failed.items())


@pytest.mark.parametrize(("conflicts", "slept"), [(1, [0.5]), (19, [0.5] * 19)])
async def test_a_conflict_on_the_budget_is_tried_again(
    etcd: ThrowawayEtcd, conflicts: int, slept: list[float]
) -> None:
    async with running(etcd) as bench:
        clock = QuickClock()
        player = Player(bench, {"pod": RUNNING, "pdbs": [budget(status__disruptionsAllowed=1)]})
        await player._store_budgets()
        await player._store_pod()
        bench.storage = Meddled(bench.storage, conflicts)  # type: ignore[assignment]  # wraps it
        registry = registry_of(bench, clock=clock)
        body = codec.from_json(policy.Eviction, evict()["body"])
        await registry.perform(Act(kinds.POD, "default", "p", "eviction", body))
        assert clock.slept == slept


async def test_after_twenty_conflicts_on_the_budget_the_conflict_is_the_answer(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        clock = QuickClock()
        player = Player(bench, {"pod": RUNNING, "pdbs": [budget(status__disruptionsAllowed=1)]})
        await player._store_budgets()
        await player._store_pod()
        bench.storage = Meddled(bench.storage, 1000)  # type: ignore[assignment]  # wraps it
        registry = registry_of(bench, clock=clock)
        body = codec.from_json(policy.Eviction, evict()["body"])
        with pytest.raises(StatusError) as caught:
            await registry.perform(Act(kinds.POD, "default", "p", "eviction", body))
        assert errors.is_conflict(caught.value)
        assert caught.value.message.startswith(
            'Operation cannot be fulfilled on poddisruptionbudgets.policy "b": the object has been modified'
        )
        assert len(clock.slept) == 19


async def test_what_is_stored_is_byte_for_byte_a_whole_encoding(etcd: ThrowawayEtcd) -> None:
    """Writes that skip the filling of presence (they start from stored bytes) leave nothing unfilled."""
    async with running(etcd) as bench:
        registry = registry_of(bench)
        pod = codec.from_json(core.Pod, PENDING)
        pod.metadata.resourceVersion = ""
        await registry.perform(Create(kinds.POD, "default", pod))

        async def check() -> core.Pod:
            value = await bench.storage.get(kinds.POD.key("default", "p"))
            assert value is not None
            assert envelope.encode(envelope.decode(kinds.POD, value.data)) == value.data
            return envelope.decode(kinds.POD, envelope.with_resource_version(value.data, value.mod_revision))

        await check()
        binding = codec.from_json(core.Binding, bind()["body"])
        await registry.perform(Act(kinds.POD, "default", "p", "binding", binding))
        bound = await check()
        bound.status.conditions.add(type="Ready", status="True")
        bound.status.containerStatuses.add(name="foo").state.running.SetInParent()
        await registry.perform(Update(kinds.POD, "default", "p", "status", bound))
        await check()
        await registry.perform(Delete(kinds.POD, "default", "p", meta.DeleteOptions()))
        await check()
