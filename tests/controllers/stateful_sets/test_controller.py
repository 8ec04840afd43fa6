"""The stateful set controller: what it writes and records, and the state in which it ends whatever comes."""

from __future__ import annotations

from typing import Any

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from nominee.controllers.revisions import history
from nominee.controllers.stateful_sets.shell.stateful_sets import StatefulSetController
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.objects import copy_of, key_of, metadata_of
from nominee.machinery.api.pb import apps, core
from nominee.machinery.runtime.clock import FakeClock
from tests.controllers.builders import EPOCH, claim, pod
from tests.controllers.contexts import context_of, synced
from tests.controllers.stateful_sets.builders import member, stateful_set
from tests.controllers.stateful_sets.playing import Api, Play, playing
from tests.support.fake_api import M


def image(name: str) -> Any:
    def change(of: apps.StatefulSet) -> None:
        of.spec.template.spec.containers[0].image = name

    return change


def replicas(number: int) -> Any:
    def change(of: apps.StatefulSet) -> None:
        of.spec.replicas = number

    return change


async def test_events_of_creation_and_deletion() -> None:
    api = Api()
    api.put(stateful_set(replicas=1, claims=["data"]))
    async with playing(api) as play:
        await play.settle(2)
        play.change(replicas(0))
        await play.settle(2)
    assert api.events == [
        ("SuccessfulCreate", "web", "create Claim data-web-0 Pod web-0 in StatefulSet web success"),
        ("SuccessfulCreate", "web", "create Pod web-0 in StatefulSet web successful"),
        ("SuccessfulDelete", "web", "delete Pod web-0 in StatefulSet web successful"),
    ]
    assert [each.metadata.name for each in api.all_of(kinds.PERSISTENT_VOLUME_CLAIM)] == ["data-web-0"]


async def test_events_of_failures() -> None:
    api = Api()
    api.put(stateful_set(replicas=1, claims=["data"]))
    refused = errors.StatusError(403, "Forbidden", "no room")
    api.rejections["create"] = [refused]
    api.reject = lambda each: (
        refused if (each.verb, each.kind) == ("create", "PersistentVolumeClaim") else None
    )
    async with playing(api) as play:
        await play.settle(1)
        api.reject = lambda each: refused if (each.verb, each.kind) == ("create", "Pod") else None
        await play.settle(1)
        api.reject = lambda _: None
        await play.settle(30)
        assert play.set.status.readyReplicas == 1
    notes = [note for reason, _, note in api.events if reason == "FailedCreate"]
    of = "Pod web-0 in StatefulSet web failed error"
    assert f"create Claim data-web-0 for {of}: no room" in notes
    assert f"create {of}: failed to create PVC data-web-0: no room" in notes
    assert f"create {of}: no room" in notes


async def test_a_claim_that_terminates_is_waited_for() -> None:
    api = Api()
    api.put(stateful_set(replicas=1, claims=["data"]))
    ending = claim("data-web-0")
    ending.metadata.deletionTimestamp.seconds = 1
    api.put(ending)
    async with playing(api) as play:
        await play.settle(1)
        assert play.pods() == []
        api.remove(kinds.PERSISTENT_VOLUME_CLAIM, "data-web-0")
        await play.settle(30)
        assert len(play.pods()) == 1
    note = "create Pod web-0 in StatefulSet web failed error: pvc data-web-0 is being deleted"
    assert ("FailedCreate", "web", note) in api.events


async def test_a_claim_of_the_pod_before_is_waited_for() -> None:
    """The pod of an ordinal that is wanted again waits until the garbage collector deleted the old claim."""
    api = Api()
    api.put(stateful_set(replicas=1, claims=["data"], when_scaled="Delete"))
    async with playing(api) as play:
        await play.settle(2)
        play.change(replicas(0))
        await play.settle(2)
        (left,) = api.all_of(kinds.PERSISTENT_VOLUME_CLAIM)
        assert [owner.kind for owner in left.metadata.ownerReferences] == ["Pod"]
        play.change(replicas(1))
        await play.settle(5)
        assert play.pods() == []
        api.remove(kinds.PERSISTENT_VOLUME_CLAIM, "data-web-0")
        await play.settle(2)
        assert len(play.pods()) == 1


async def test_a_pod_that_becomes_available_while_a_revision_is_deleted_is_looked_at_again() -> None:
    """Source: pkg/controller/statefulset (sync): the set is queued again by minReadySeconds."""

    class SlowApi(Api):
        async def delete(self, kind: Kind[M], name: str, namespace: str = "", **options: object) -> bool:
            clock.set(clock.now() + 6.0)
            return await super().delete(kind, name, namespace, **options)

    clock, api = FakeClock(float(EPOCH)), SlowApi()
    of = stateful_set(replicas=1, minReadySeconds=10, revisionHistoryLimit=0)
    update = history.new_revision(of, 2, "new")
    ready = member(of, 0, image=update.metadata.name, ready_since=-5)
    context = context_of(api, clock)
    controller = StatefulSetController(context)
    for each in (of, update, ready):
        api.put(each)
    async with synced(context):
        await controller.reconcile(key_of(of))
        api.put(history.new_revision(stateful_set(image="v0"), 1, "old"))
        await clock.settle()
        assert await controller.reconcile(key_of(of)) == 5.0
    (left,) = api.all_of(kinds.CONTROLLER_REVISION)
    assert left.metadata.name == update.metadata.name


async def test_orphans_are_adopted() -> None:
    of = stateful_set(replicas=2)
    api = Api()
    api.put(of)
    orphan = history.new_revision(of, 7, "abc")
    stranger = member(of, 5)
    stranger.metadata.name = "other-0"
    pods = [member(of, 0, image=orphan.metadata.name), stranger]
    for each in (orphan, *pods):
        metadata = metadata_of(each)
        metadata.uid = f"uid-{metadata.name}"
        del metadata.ownerReferences[:]
        api.put(each)
    async with playing(api) as play:
        await play.settle(4)
        assert play.set.status.updateRevision == orphan.metadata.name
        owners = {pod.metadata.name: [o.uid for o in pod.metadata.ownerReferences] for pod in play.pods()}
    assert owners == {"other-0": [], "web-0": ["set"], "web-1": ["set"]}
    (adopted,) = api.all_of(kinds.CONTROLLER_REVISION)
    assert adopted.metadata.ownerReferences[0].uid == "set"


async def test_a_taken_name_of_a_revision_counts_a_collision() -> None:
    of = stateful_set(replicas=1)
    digest = history.data_hash(history.data_of(of.spec.template), 0)
    taken = history.new_revision(stateful_set(image="other"), 1, digest)
    taken.metadata.ownerReferences[0].uid = "foreign"
    api = Api()
    api.put(of)
    api.put(taken)
    async with playing(api) as play:
        await play.settle(2)
        status = play.set.status
    assert status.collisionCount == 1
    assert status.updateRevision != taken.metadata.name
    assert status.currentRevision == status.updateRevision


async def test_an_existing_revision_of_the_template_is_no_collision() -> None:
    """One that a watch that is behind does not show; here it is the selector that does not."""
    of = stateful_set(replicas=1)
    unlabelled = history.new_revision(of, 1, history.data_hash(history.data_of(of.spec.template), 0))
    unlabelled.metadata.labels.clear()
    api = Api()
    api.put(of)
    api.put(unlabelled)
    async with playing(api) as play:
        await play.settle(3)
        status = play.set.status
    assert (status.collisionCount, status.readyReplicas) == (0, 1)
    assert len(api.all_of(kinds.CONTROLLER_REVISION)) == 1


async def test_nothing_is_done_until_a_new_revision_is_seen() -> None:
    """Otherwise the current revision would be unknown, and the update revision taken for it."""
    api = Api()
    api.put(stateful_set(replicas=1))
    async with playing(api) as play:
        await play.settle(3)
        api.behind.add("controllerrevisions")
        play.change(image("v2"))
        await play.advance(5.0)
        play.change(image("v3"))
        await play.advance(5.0)
        revisions = api.all_of(kinds.CONTROLLER_REVISION)
        await play.settle(5)
        assert play.set.status.currentRevision == play.set.status.updateRevision
    assert sorted(each.revision for each in revisions) == [1, 2]
    assert sorted(each.revision for each in api.all_of(kinds.CONTROLLER_REVISION)) == [1, 2, 3]


async def test_history_is_truncated_but_not_the_revisions_of_pods() -> None:
    api = Api()
    api.put(stateful_set(replicas=2, strategy="OnDelete", revisionHistoryLimit=1))
    async with playing(api) as play:
        await play.settle(3)
        for number in range(2, 6):
            play.change(image(f"v{number}"))
            await play.settle(1)
        images = [
            history.template_of(each).spec.containers[0].image
            for each in history.in_order(api.all_of(kinds.CONTROLLER_REVISION))
        ]
    assert images == ["v1", "v4", "v5"]  # in use, within the limit, the latest
    gone = [each for each in api.requests if (each.verb, each.kind) == ("delete", "ControllerRevision")]
    assert gone
    assert all(each.options["uid"] for each in gone)  # another one may have the name by now


async def test_creations_that_the_watch_does_not_show_are_not_repeated() -> None:
    api = Api()
    api.put(stateful_set(policy="Parallel"))
    async with playing(api) as play:
        await play.advance()
        api.behind.add("pods")
        play.change(replicas(5))
        await play.advance()
        play.change(image("v2"))
        await play.advance()
        api.behind.clear()
    made = [each.key for each in api.requests if (each.verb, each.kind) == ("create", "Pod")]
    assert sorted(made) == [f"default/web-{ordinal}" for ordinal in range(5)]


async def test_a_pod_that_came_and_went_unseen_is_not_waited_for() -> None:
    """The watch broke while the pod existed, and lists again afterwards: its resourceVersion is enough."""
    api = Api(behind={"pods"})
    api.put(stateful_set(replicas=1))
    async with playing(api) as play:
        await play.advance()
        (lost,) = play.pods()
        api.remove(kinds.POD, lost.metadata.name)
        api.log = [each for each in api.log if each[1] is not kinds.POD]
        api.put(pod("another"))
        api.behind.clear()
        await play.settle(4)
        assert play.set.status.readyReplicas == 1


_CHANGES = st.one_of(
    st.tuples(st.just("scale"), st.integers(0, 4)),
    st.tuples(st.just("image"), st.integers(1, 3)),
    st.tuples(st.just("step"), st.integers(0, 4)),
    st.tuples(st.just("fail"), st.integers(0, 4)),
    st.tuples(st.just("delete"), st.integers(0, 4)),
    st.tuples(st.just("behind"), st.sampled_from(["pods", "statefulsets", "controllerrevisions"])),
    st.tuples(st.just("caught up"), st.just(0)),
    st.tuples(st.just("conflict"), st.integers(1, 3)),
    st.tuples(st.just("restart"), st.just(0)),
    st.tuples(st.just("wait"), st.integers(0, 3)),
)


async def _do(play: Play, name: str, argument: Any) -> None:
    pods = play.pods()
    target = pods[argument % len(pods)] if pods and isinstance(argument, int) else None
    match name:
        case "scale":
            play.change(replicas(argument))
        case "image":
            play.change(image(f"v{argument}"))
        case "step" if target is not None:
            play.step(target)
        case "fail" if target is not None and not target.metadata.HasField("deletionTimestamp"):
            failed = copy_of(target)
            failed.status.phase = "Failed"
            del failed.status.conditions[:]
            play.api.put(failed)
        case "delete" if target is not None:
            play.api.end(target)
        case "behind":
            play.api.behind.add(argument)
        case "caught up":
            play.api.behind.clear()
        case "conflict":
            for verb in ("update/status", "update", "create", "delete"):
                error = errors.conflict(kinds.POD, "x")
                play.api.rejections.setdefault(verb, []).extend([error] * argument)
        case "restart":
            await play.restart()
    await play.advance(0.2 * argument if name == "wait" else 0.01)


@settings(max_examples=60, deadline=None)
@given(
    policy=st.sampled_from(["OrderedReady", "Parallel"]),
    claims=st.booleans(),
    changes=st.lists(_CHANGES, max_size=14),
)
def test_any_order_of_events_conflicts_and_restarts_ends_in_the_same_state(
    policy: str, claims: bool, changes: list[tuple[str, Any]]
) -> None:
    async def play_all() -> None:
        api = Api()
        api.put(stateful_set(policy=policy, claims=["data"] if claims else [], revisionHistoryLimit=1))
        async with playing(api) as play:
            for name, argument in changes:
                await _do(play, name, argument)
            api.rejections.clear()
            await play.rest()
            _check(play)

    anyio.run(play_all)


def _check(play: Play) -> None:
    of, pods = play.set, play.pods()
    names = [f"web-{ordinal}" for ordinal in range(of.spec.replicas)]
    assert [pod.metadata.name for pod in pods] == names
    # A pod of a broken revision would hold up an ordered update; these all become ready.
    assert {pod.spec.containers[0].image for pod in pods} <= {of.spec.template.spec.containers[0].image}
    status = of.status
    counts = (status.replicas, status.readyReplicas, status.currentReplicas, status.updatedReplicas)
    assert set(counts) == {of.spec.replicas}
    assert status.currentRevision == status.updateRevision
    assert status.observedGeneration == of.metadata.generation
    revisions = history.in_order(play.api.all_of(kinds.CONTROLLER_REVISION))
    assert revisions[-1].metadata.name == status.updateRevision
    assert len(revisions) <= 2
    mounted = {volume.persistentVolumeClaim.claimName for pod in pods for volume in _claims(pod)}
    assert mounted <= {each.metadata.name for each in play.api.all_of(kinds.PERSISTENT_VOLUME_CLAIM)}


def _claims(pod: core.Pod) -> list[core.VolumeSource]:
    return [v.volumeSource for v in pod.spec.volumes if v.volumeSource.HasField("persistentVolumeClaim")]
