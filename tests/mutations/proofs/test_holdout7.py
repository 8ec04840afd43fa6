"""The seventh set of mutations that are kept apart: what they break where no other test shows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from nominee.apiserver.cache.kind_cache import Transition
from nominee.apiserver.cache.stored_objects import StoredObjects
from nominee.apiserver.kinds.table import strategy_of
from nominee.apiserver.objects.watcher import EventType
from nominee.apiserver.registry.store import Store
from nominee.apiserver.schema.version_fields import TABLE_VERSION
from nominee.apiserver.storage.interface import StorageUnavailable
from nominee.autoscaler.cloud.servicer import CloudServicer
from nominee.autoscaler.cloud.state import CloudState
from nominee.autoscaler.cloud.state_file import StateFile
from nominee.autoscaler.options import Compat
from nominee.autoscaler.orders import Observe, RefreshCloudProvider
from nominee.autoscaler.result import LoopResult
from nominee.autoscaler.steps.cluster.refresh import refresh
from nominee.controllers.daemon_sets.rolling_update import plan_update
from nominee.controllers.deployments import progress
from nominee.controllers.shell.disruption_target import disrupt
from nominee.controllers.stateful_sets import identity, retention
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.objects import condition_is, copy_of, get_condition
from nominee.machinery.api.pb import apps, core, meta
from nominee.machinery.client.api_client import Client
from nominee.machinery.runtime.clock import FakeClock, Moment, to_time
from nominee.pb.clusterautoscaler.cloudprovider.v1.externalgrpc import externalgrpc_pb2 as protocol
from tests.apiserver.cache.test_kind_cache import stored
from tests.apiserver.storage.test_unknown_outcomes import OURS, deleted
from tests.autoscaler.builders import autoscaler, new_world, node
from tests.autoscaler.cloud.test_state import GROUP, NOW, begun
from tests.autoscaler.steps.test_orders import begin
from tests.controllers.builders import pod as stored_pod
from tests.controllers.daemon_sets.builders import OLD, daemon, daemon_set, placement
from tests.controllers.deployments.builders import deployment
from tests.controllers.jobs.builders import job, sync_of, tracked
from tests.controllers.stateful_sets.builders import member, stateful_set
from tests.mutations.proofs.memory_storage import LaggingCache, MemoryStorage

NAMESPACE = "default"

# --- apiserver ---


@pytest.mark.parametrize(("bound_to", "seconds"), [("n1", 30), ("", 0)])
def test_a_pod_that_starts_has_its_grace_period(bound_to: str, seconds: int) -> None:
    starting = core.Pod(spec={"nodeName": bound_to, "terminationGracePeriodSeconds": 30})
    starting.status.phase = "Pending"
    options = meta.DeleteOptions()
    assert strategy_of(kinds.POD).check_graceful_delete(starting, options)
    assert options.gracePeriodSeconds == seconds


async def test_an_object_that_the_cache_lacks_is_looked_up_in_etcd() -> None:
    storage = MemoryStorage()
    storage.put(core.Namespace(metadata={"name": "new"}))
    store = Store(storage, StoredObjects(TABLE_VERSION), LaggingCache())
    found = await store.find(kinds.NAMESPACE, "", "new")
    assert found is not None
    assert found.name == "new"
    assert await store.find(kinds.NAMESPACE, "", "other") is None


def test_an_object_that_leaves_a_selection_is_deleted_for_its_watcher() -> None:
    before, now = stored(NAMESPACE, "p", "on", 2), stored(NAMESPACE, "p", "off", 3)
    event = Transition(before, now, 3).event(lambda found: found is before)
    assert event is not None
    assert (event.type, event.object.name) == (EventType.DELETED, "p")


async def test_a_repeated_deletion_spares_an_object_that_was_created_since() -> None:
    with pytest.raises(StorageUnavailable) as error:
        await deleted(OURS, uncertain=True, created=7)
    assert error.value.maybe_applied


# --- controllers ---


@pytest.mark.parametrize(("ordinal", "is_owner"), [(1, True), (2, False), (3, False), (4, True)])
def test_pods_within_shifted_ordinals_do_not_own_their_claims(ordinal: int, *, is_owner: bool) -> None:
    of = stateful_set(replicas=2, start=2, claims=["data"], when_scaled="Delete")
    pod = member(of, ordinal)
    [(template, name)] = identity.claims_of(of, pod.metadata.name)
    changed = retention.changed_claim(of, pod, identity.new_claim(of, template, name))
    assert (changed is not None) is is_owner


def test_a_rolling_update_waits_for_new_daemons() -> None:
    pods = [daemon("new1", "n1", ready=False), daemon("old2", "n2", of=OLD), daemon("old3", "n3", of=OLD)]
    assert not plan_update(placement(daemon_set(unavailable=1), *pods)).delete
    pods[0] = daemon("new1", "n1")
    assert len(plan_update(placement(daemon_set(unavailable=1), *pods)).delete) == 1


def test_a_pod_that_the_status_names_counts_once() -> None:
    ended = tracked(stored_pod("ended", uid="ended", phase="Succeeded"))
    named = {"uncountedTerminatedPods": {"succeeded": ["ended"]}}
    assert len(sync_of(job(completions=2, status=named), ended).work().create) == 1
    assert len(sync_of(job(completions=2), ended).work().create) == 1


class Refusing:
    """An API server that refuses the first write, and keeps the later ones."""

    def __init__(self) -> None:
        self.writes = list[core.Pod]()
        self._refuses = True

    async def update(self, obj: core.Pod, *, subresource: str) -> None:
        if self._refuses:
            self._refuses = False
            raise StatusError(503, "ServiceUnavailable", "away")
        self.writes.append(copy_of(obj))

    async def delete(self, *_: object, **__: object) -> None:
        assert self.writes, "the pod is marked first"


async def test_a_condition_that_was_refused_is_written_again() -> None:
    pod, api = stored_pod("p"), Refusing()
    client, words = cast("Client", api), {"reason": "DeletionByTaintManager", "message": "out"}
    with pytest.raises(StatusError):
        await disrupt(client, pod, to_time(NOW), **words)
    await disrupt(client, pod, to_time(NOW), **words)
    assert [condition_is(each.status.conditions, "DisruptionTarget") for each in api.writes] == [True]


def test_each_progress_of_a_rollout_renews_its_deadline() -> None:
    rolling = deployment(replicas=3, deadline=10)
    for updated in (1, 2):
        status = apps.DeploymentStatus(replicas=3, updatedReplicas=updated, observedGeneration=1)
        status.conditions.extend(rolling.status.conditions)
        progress.judge(rolling, (), None, status, NOW + 8 * updated)
        rolling.status.CopyFrom(status)
    renewed = get_condition(rolling.status.conditions, progress.PROGRESSING)
    assert renewed is not None
    assert (renewed.lastTransitionTime.seconds, renewed.lastUpdateTime.seconds) == (NOW + 8, NOW + 16)


# --- autoscaler ---


async def test_a_node_that_has_not_started_is_still_upcoming() -> None:
    world = new_world(FakeClock(), target=1)
    node(world, "n1", ready=False, age=5.0)
    state, context = await begin(world)
    at = context.result.at
    state.registry.register_scale_up("ng1", 1, at.monotonic)
    state.registry.update_nodes(context.observation.nodes, state.view, at, context.result.events)
    assert state.registry.upcoming_nodes(state.view.groups, at.monotonic) == ({"ng1": 1}, ["n1"])


async def test_a_decreased_target_survives_a_restart_of_the_cloud(tmp_path: Path) -> None:
    state, file = begun(), StateFile(tmp_path)
    servicer = CloudServicer(state, FakeClock(NOW), lambda: file.save(state))
    file.save(state)
    request = protocol.NodeGroupDecreaseTargetSizeRequest(id="g", delta=-1)
    await servicer.NodeGroupDecreaseTargetSize(request, cast("Any", None))
    restarted = CloudState([GROUP])
    assert file.load(restarted)
    assert (restarted.target("g"), restarted.instances) == (0, {})


async def test_a_deletion_that_ends_during_a_loop_is_in_progress_for_it() -> None:
    world = new_world(FakeClock(), target=2)
    node(world, "n1")
    state = autoscaler(world, Compat.V1_36).state
    state.deletions.start_deletion("n1", "ng1", drain=False)
    step, view = refresh(state, LoopResult(at=Moment.of(world.clock))), await world.refresh(())
    assert isinstance(next(step), Observe)
    assert isinstance(step.send(world.observe()), RefreshCloudProvider)
    with pytest.raises(StopIteration) as ended:
        step.send(view)
    state.deletions.end_deletion("n1")
    _, deletions = ended.value.value
    assert deletions.count("ng1") == 1
