"""Rollouts, step by step: the actions and the conditions of a deployment."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nominee.controllers.deployments import progress, rollout, sets
from nominee.controllers.deployments.rollout import CreateSet, DeleteSet, UpdateDeployment
from nominee.controllers.planned_events import PlannedEvent
from nominee.machinery.wire.codec import to_json
from tests.controllers.deployments.builders import World, deployment, replica_set


def test_first_rollout() -> None:
    world = World(deployment())
    outcome = world.step()
    (made,) = outcome.actions
    assert isinstance(made, CreateSet)
    each = made.replica_set
    assert each.spec.replicas == 3
    assert world.events == [f"ScalingReplicaSet: Scaled up replica set {each.metadata.name} from 0 to 3"]
    assert dict(each.metadata.annotations) == {sets.REVISION: "1", sets.DESIRED: "3", sets.MAX: "4"}
    assert world.deployment.metadata.annotations[sets.REVISION] == "1"
    name = each.metadata.name
    assert world.condition("Progressing") == (
        "True", "NewReplicaSetCreated", f'Created new replica set "{name}"',
    )  # fmt: skip
    assert world.condition("Available") == (
        "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.",
    )  # fmt: skip
    world.pods({})
    world.step()
    assert world.condition("Progressing") == (
        "True", "ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.',
    )  # fmt: skip
    status = to_json(world.deployment.status)
    del status["conditions"]
    assert status == {
        "observedGeneration": 1, "replicas": 3, "updatedReplicas": 3, "unavailableReplicas": 3,
        "terminatingReplicas": 0,
    }  # fmt: skip
    world.settle()
    assert world.condition("Progressing") == (
        "True", "NewReplicaSetAvailable", f'ReplicaSet "{name}" has successfully progressed.',
    )  # fmt: skip
    assert world.condition("Available") == (
        "True", "MinimumReplicasAvailable", "Deployment has minimum availability.",
    )  # fmt: skip


def test_a_rolling_update_step_by_step() -> None:
    world = World(deployment(replicas=4, surge=1, unavailable=1))
    world.settle()
    world.events.clear()
    world.image("v2")
    world.step()
    # One more than wanted, and as the new one is not available yet, one may be missing.
    assert world.sizes() == {"v1": 3, "v2": 1}
    world.pods({"v1": 3, "v2": 0})
    world.step()
    assert world.sizes() == {"v1": 3, "v2": 2}
    world.pods({"v1": 3, "v2": 0})
    world.step()
    assert world.sizes() == {"v1": 3, "v2": 2}  # 3 available of 4: nothing may go
    world.pods({"v1": 3, "v2": 2})
    world.step()
    assert world.sizes() == {"v1": 1, "v2": 2}
    world.settle()
    assert world.sizes() == {"v1": 0, "v2": 4}
    old, new = (world.set_of(image).metadata.name for image in ("v1", "v2"))
    assert world.events == [
        f"ScalingReplicaSet: Scaled {line}"
        for line in (
            f"up replica set {new} from 0 to 1",
            f"down replica set {old} from 4 to 3",
            f"up replica set {new} from 1 to 2",
            f"down replica set {old} from 3 to 1",
            f"up replica set {new} from 2 to 4",
            f"down replica set {old} from 1 to 0",
        )
    ]
    assert (world.revision("v1"), world.revision("v2")) == (1, 2)
    assert world.deployment.status.replicas == 4


def test_unavailable_old_pods_are_deleted_first() -> None:
    world = World(deployment(replicas=4, surge=1, unavailable=1))
    world.step()
    world.pods({"v1": 0})
    world.image("v2")
    world.step()
    assert world.sizes() == {"v1": 3, "v2": 1}


def test_a_former_template_reuses_its_set_under_a_new_revision() -> None:
    world = World(deployment())
    for image in ("v1", "v2", "v1"):
        world.image(image)
        world.settle()
    assert world.sizes() == {"v1": 3, "v2": 0}
    assert (world.revision("v1"), world.revision("v2")) == (3, 2)
    assert world.set_of("v1").metadata.annotations[sets.HISTORY] == "1"
    assert world.deployment.metadata.annotations[sets.REVISION] == "3"


def test_old_sets_beyond_the_history_limit_are_deleted() -> None:
    world = World(deployment(history=1))
    for image in ("v1", "v2", "v3", "v4"):
        world.image(image)
        world.settle()
    assert world.sizes() == {"v3": 0, "v4": 3}
    unlimited = World(deployment(history=None))
    for image in ("v1", "v2", "v3"):
        unlimited.image(image)
        unlimited.settle()
    assert len(unlimited.sets) == 3


def test_an_old_set_that_still_has_pods_is_kept() -> None:
    world = World(deployment(history=0))
    world.settle()
    world.image("v2")
    world.settle()
    assert world.sizes() == {"v2": 3}
    busy = replica_set("busy", "v0", 0, revision=1)
    busy.status.replicas = 1
    world.sets["busy"] = busy
    outcome = world.step()
    assert not [action for action in outcome.actions if isinstance(action, DeleteSet)]


def test_min_ready_seconds_reach_the_set() -> None:
    world = World(deployment())
    world.settle()
    world.deployment.spec.minReadySeconds = 7
    world.settle()
    assert world.set_of("v1").spec.minReadySeconds == 7


@settings(max_examples=60, deadline=None)
@given(
    replicas=st.integers(1, 12),
    surge=st.integers(0, 4),
    unavailable=st.integers(0, 4),
    data=st.data(),
)
def test_a_rollout_never_exceeds_its_fenceposts(
    replicas: int, surge: int, unavailable: int, data: st.DataObject
) -> None:
    if not surge and not unavailable:
        surge = 1
    world = World(deployment(replicas=replicas, surge=surge, unavailable=unavailable))
    world.settle()
    world.image("v2")
    least = replicas - min(unavailable, replicas)
    for _ in range(30):
        world.step()
        assert sum(world.sizes().values()) <= replicas + surge
        # Whatever becomes available in which order: an old pod that was, goes only when it may.
        new = world.set_of("v2")
        ready = data.draw(
            st.integers(min(new.status.availableReplicas, new.spec.replicas), new.spec.replicas)
        )
        old_before = world.set_of("v1").spec.replicas
        assert old_before + new.status.availableReplicas >= least
        world.pods({"v1": old_before, "v2": ready})
    world.settle()
    assert world.sizes() == {"v1": 0, "v2": replicas}


# --- scaling, pausing ---


def test_scaling_during_a_rollout_is_proportional() -> None:
    world = World(deployment(replicas=10, surge=3, unavailable=2))
    world.settle()
    world.image("v2")
    world.step()
    assert world.sizes() == {"v1": 8, "v2": 3}
    world.pods({"v1": 8, "v2": 0})
    world.step()
    world.pods({"v1": 8, "v2": 0})
    assert world.sizes() == {"v1": 8, "v2": 5}
    world.scale(15)
    world.step()
    assert world.sizes() == {"v1": 11, "v2": 7}
    assert {s.metadata.annotations[sets.DESIRED] for s in world.sets.values()} == {"15"}


def test_old_pods_stay_while_the_status_of_their_set_is_older_than_its_size() -> None:
    world = World(deployment(replicas=10, surge=3, unavailable=2))
    world.settle()
    world.image("v2")
    world.step()
    world.pods({"v1": 8, "v2": 0})
    world.step()
    world.pods({"v1": 8, "v2": 0})
    world.scale(3)
    world.step()
    assert world.sizes() == {"v1": 4, "v2": 2}
    world.step()  # the old set's status still says that 8 pods are available
    assert world.sizes()["v1"] == 4
    world.pods({"v1": 4, "v2": 0})
    world.step()
    assert world.sizes()["v1"] == 1


def test_scaling_a_complete_deployment_scales_its_set() -> None:
    world = World(deployment())
    world.settle()
    world.scale(5)
    world.settle()
    assert world.sizes() == {"v1": 5}
    world.scale(0)
    world.settle()
    assert world.sizes() == {"v1": 0}
    world.scale(2)
    world.settle()
    assert world.sizes() == {"v1": 2}
    assert world.condition("Available") == (
        "True", "MinimumReplicasAvailable", "Deployment has minimum availability.",
    )  # fmt: skip


def test_a_paused_deployment_scales_but_does_not_roll_out() -> None:
    world = World(deployment())
    world.settle()
    world.deployment.spec.paused = True
    world.image("v2")
    world.step()
    assert world.condition("Progressing") == ("Unknown", "DeploymentPaused", "Deployment is paused")
    world.scale(4)
    world.settle()
    assert world.sizes() == {"v1": 4}
    assert world.deployment.status.updatedReplicas == 0
    world.deployment.spec.paused = False
    world.step()
    assert world.sizes()["v2"] == 1
    world.settle()
    assert world.sizes() == {"v1": 0, "v2": 4}


def test_a_paused_deployment_rolls_out_when_it_is_resumed() -> None:
    world = World(deployment(paused=True))
    world.step()
    assert world.sizes() == {}
    world.deployment.spec.paused = False
    outcome = world.step()
    assert world.condition("Progressing") == (
        "True", "NewReplicaSetCreated",
        f'Created new replica set "{world.set_of("v1").metadata.name}"',
    )  # fmt: skip
    assert outcome.status is not None


# --- recreating ---


def test_recreate_waits_for_the_last_old_pod() -> None:
    world = World(deployment(strategy="Recreate"))
    world.settle()
    old = world.set_of("v1").metadata.uid
    world.running = {old}
    world.image("v2")
    world.step()
    assert world.sizes() == {"v1": 0}
    world.step()
    assert world.sizes() == {"v1": 0}  # status.replicas says that there are pods
    world.pods(all_available=True)
    world.step()
    assert world.sizes() == {"v1": 0}  # the last one is ending
    world.running = set()
    world.step()
    assert world.sizes() == {"v1": 0, "v2": 3}
    world.settle()
    assert world.condition("Progressing") is not None


# --- the deadline ---


def test_without_progress_until_the_deadline_it_fails() -> None:
    world = World(deployment(deadline=10))
    world.step()
    world.pods({})
    world.step()
    outcome = world.step()
    assert outcome.status is None
    assert outcome.again == pytest.approx(10.0)  # nine seconds are left, and one more
    world.now += 20
    world.step()
    name = world.set_of("v1").metadata.name
    assert world.condition("Progressing") == (
        "False", "ProgressDeadlineExceeded", f'ReplicaSet "{name}" has timed out progressing.',
    )  # fmt: skip
    assert world.step().again is None
    # Pausing does not hide it; a pod that comes up is progress again.
    world.deployment.spec.paused = True
    world.step()
    assert world.reason("Progressing") == "ProgressDeadlineExceeded"
    world.deployment.spec.paused = False
    world.pods({"v1": 1})
    world.step()
    assert world.reason("Progressing") == "ReplicaSetUpdated"


def test_without_a_deadline_there_is_no_progressing() -> None:
    world = World(deployment(deadline=None))
    world.settle()
    assert world.condition("Progressing") is None
    assert not progress.has_deadline(deployment(deadline=2**31 - 1))


def test_a_set_that_cannot_create_pods_is_a_condition() -> None:
    world = World(deployment())
    world.step()
    world.set_of("v1").status.conditions.add(
        type="ReplicaFailure", status="True", reason="FailedCreate", message="no room"
    )
    world.step()
    assert world.condition("ReplicaFailure") == ("True", "FailedCreate", "no room")
    del world.set_of("v1").status.conditions[:]
    world.step()
    assert world.condition("ReplicaFailure") is None
    message = 'Failed to create new replica set "web-x": no'
    failed = rollout.create_failed(deployment(), message, world.now)
    assert failed.status.conditions[0].reason == "ReplicaSetCreateError"
    assert failed.status.conditions[0].message == message


# --- rolling back by annotation ---


@pytest.mark.parametrize(
    ("to", "image", "event"),
    [
        ("0", "v2", 'DeploymentRollback: Rolled back deployment "web" to revision 2'),
        ("1", "v1", 'DeploymentRollback: Rolled back deployment "web" to revision 1'),
        (
            "3",
            "v3",
            "DeploymentRollbackTemplateUnchanged: The rollback revision contains the same template as "
            'current deployment "web"',
        ),
        ("9", "v3", "DeploymentRollbackRevisionNotFound: Unable to find the revision to rollback to."),
    ],
)
def test_rolling_back(to: str, image: str, event: str) -> None:
    world = World(deployment())
    for each in ("v1", "v2", "v3"):
        world.image(each)
        world.settle()
    world.events.clear()
    world.deployment.metadata.annotations[sets.ROLLBACK_TO] = to
    outcome = world.step()
    assert isinstance(outcome.actions[0], UpdateDeployment)
    assert world.events == [event]
    assert sets.ROLLBACK_TO not in world.deployment.metadata.annotations
    assert world.deployment.spec.template.spec.containers[0].image == image
    assert sets.HASH_LABEL not in world.deployment.spec.template.metadata.labels
    world.settle()
    assert world.sizes()[image] == 3


@pytest.mark.parametrize("to", ["", "last", "1.0", str(1 << 63)])
def test_an_annotation_that_is_no_number_is_no_roll_back(to: str) -> None:
    world = World(deployment())
    for each in ("v1", "v2"):
        world.image(each)
        world.settle()
    world.events.clear()
    world.deployment.metadata.annotations[sets.ROLLBACK_TO] = to
    world.scale(4)
    world.settle()
    assert world.sizes()["v2"] == 4
    assert world.deployment.metadata.annotations[sets.ROLLBACK_TO] == to
    assert all(event.startswith("ScalingReplicaSet") for event in world.events)


# --- deletion, invalid selectors ---


def test_a_terminating_deployment_updates_only_its_status() -> None:
    world = World(deployment())
    world.settle()
    world.deployment.metadata.deletionTimestamp.seconds = 1
    world.image("v2")
    world.scale(9)
    outcome = world.step()
    assert not outcome.actions
    assert world.deployment.status.observedGeneration == world.deployment.metadata.generation


def test_an_empty_selector_is_refused() -> None:
    world = World(deployment(selector={}))
    outcome = world.step()
    (action,) = outcome.actions
    assert isinstance(action, PlannedEvent)
    assert world.events == [
        "SelectingAll: This deployment is selecting all pods. A non-empty selector is required."
    ]
    assert world.deployment.status.observedGeneration == 1
    assert world.sizes() == {}
