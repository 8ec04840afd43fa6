"""Another client replaces, changes or removes an object while a process is at work on it."""

from __future__ import annotations

from typing import Any, cast

import anyio
import anyio.lowlevel
import pytest

from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.cases.enumeration import Scope, neighbours, singles
from nominee.lab.chaos.cases.observations import Activity, Undisturbed
from nominee.lab.chaos.cases.perturbations import Action, AtFailpoint
from nominee.lab.chaos.interfering import interfere, touch_all
from nominee.lab.chaos.messages import CaseAnswer
from nominee.lab.chaos.worker import simulated
from nominee.lab.scenario.format.reading import read_text
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.pb import apps, batch, coordination, core, meta
from nominee.machinery.client.api_client import Client
from nominee.machinery.runtime.clock import FakeClock
from nominee.simulation.simulation import Simulation
from tests.support.fake_api import FakeApi

SCENARIO = """
apiVersion: scenario.nominee.dev/v1alpha1
kind: Scenario
metadata: {name: one-pod}
spec:
  cluster: {nodes: 1, without: [autoscaler, cloud, controllers]}
  steps:
    - apply:
        apiVersion: v1
        kind: Pod
        metadata: {name: "a"}
        spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: app}]}
    - expect: {eventually: {object: {kind: Pod, name: a, condition: Ready=True}}}
"""


def _run(case: str) -> CaseAnswer:
    (scenario,) = read_text(SCENARIO, "one-pod.yaml")
    answer = simulated(scenario, Case.parse(case), Undisturbed(), Simulation(1), verbose=False)
    assert not answer.error
    return answer


def _changes(answer: CaseAnswer) -> list[str]:
    return [change for write in answer.trace if write.subject == "Pod default/a" for change in write.changes]


@pytest.mark.parametrize("failpoint", ["scheduler:scheduler.bind.before", "kubelet-0:kubelet.start.before"])
def test_a_pod_is_replaced_while_a_task_waits(failpoint: str) -> None:
    answer = _run(f"{failpoint}=recreate")
    assert answer.reached
    assert answer.all_held
    changes = _changes(answer)
    assert [change for change in changes if change in ("created", "deleted")] == [
        "created",
        "deleted",
        "created",
    ]


def test_a_pod_is_changed_and_changed_back_while_a_task_waits() -> None:
    answer = _run("scheduler:scheduler.bind.before=touch")
    assert answer.reached
    assert answer.all_held
    changes = _changes(answer)
    assert "deleted" not in changes
    assert [change for change in changes if "metadata.labels" in change] == [
        "+metadata.labels",
        "-metadata.labels",
    ]


def test_only_tasks_that_are_at_work_on_a_pod_are_disturbed() -> None:
    activity = Activity(hits={"kubelet-0": {"kubelet.start.before": 1, "kubelet.lease.before": 1}})
    scope = Scope(actions=(Action.RECREATE, Action.DELAY), seed=1)
    assert {str(case) for case in singles(activity, scope)} == {
        "kubelet-0:kubelet.start.before=recreate",
        "kubelet-0:kubelet.start.before=delay",
        "kubelet-0:kubelet.lease.before=delay",
    }
    lease = AtFailpoint("kubelet-0", "kubelet.lease.before", Action.DELAY)
    assert list(neighbours(lease, activity, scope)) == []


WRITE = {"verb": "PUT", "resource": "replicasets", "object": "default/web"}


def _replica_set(name: str = "web", *, has_owner: bool = False) -> apps.ReplicaSet:
    made = apps.ReplicaSet(metadata=meta.ObjectMeta(name=name, namespace="default", uid="former"))
    made.status.replicas = 3
    if has_owner:
        made.metadata.ownerReferences.add(kind="Deployment", name="web", controller=True)
    return made


async def _disturbed(api: FakeApi, action: Action, labels: dict[str, str]) -> list[str]:
    """Return the changes of ReplicaSets by another client."""
    before = len(api.log_of(kinds.REPLICA_SET))
    await interfere(cast("Client", api), action, labels, FakeClock())
    return [change for change, _ in api.log_of(kinds.REPLICA_SET)[before:]]


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (Action.TOUCH, ["MODIFIED", "MODIFIED"]),
        (Action.RECREATE, ["DELETED", "ADDED"]),
        (Action.REMOVE, ["DELETED"]),
    ],
)
async def test_an_object_of_any_kind_is_disturbed(action: Action, expected: list[str]) -> None:
    api = FakeApi.of(_replica_set())
    assert await _disturbed(api, action, WRITE) == expected
    found = api.find(kinds.REPLICA_SET, "web", "default")
    assert (found is None) == (action is Action.REMOVE)
    if found is not None:
        is_former = found.metadata.uid == "former", found.status.replicas == 3
        assert is_former == (action is Action.TOUCH, action is Action.TOUCH)
        assert not found.metadata.labels


class _LosesAnswers(FakeApi):
    """Answers the first call of each of these verbs with 503; all but a creation it has carried out."""

    verbs: set[str]

    async def patch(self, *args: Any, **options: Any) -> Any:
        return self._answered("patch", await super().patch(*args, **options))

    async def delete(self, *args: Any, **options: Any) -> Any:
        return self._answered("delete", await super().delete(*args, **options))

    async def create(self, *args: Any, **options: Any) -> Any:
        self._answered("create", None)
        return await super().create(*args, **options)

    def _answered(self, verb: str, answer: object) -> object:
        if verb in self.verbs:
            self.verbs.remove(verb)
            raise errors.service_unavailable("lost")
        return answer


class _NoWait(FakeClock):
    """A clock on which no sleep takes time."""

    async def sleep(self, seconds: float) -> None:
        await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize(
    ("action", "verb"), [(Action.TOUCH, "patch"), (Action.RECREATE, "delete"), (Action.RECREATE, "create")]
)
async def test_another_client_whose_answer_is_lost_does_not_stop_halfway(action: Action, verb: str) -> None:
    api = _LosesAnswers.of(_replica_set())
    assert isinstance(api, _LosesAnswers)
    api.verbs = {verb}
    assert await interfere(cast("Client", api), action, WRITE, _NoWait())
    assert not api.verbs
    found = api.find(kinds.REPLICA_SET, "web", "default")
    assert found is not None
    assert not found.metadata.labels
    assert (found.metadata.uid == "former") is (action is Action.TOUCH)


async def test_the_controller_of_an_object_creates_it_again() -> None:
    assert await _disturbed(FakeApi.of(_replica_set(has_owner=True)), Action.RECREATE, WRITE) == ["DELETED"]


@pytest.mark.parametrize(
    ("resource", "name"),
    [
        ("", ""),
        ("replicasets", "/web"),
        ("replicasets", "default/"),
        ("replicasets", "default/other"),
        ("nodes", "/web"),
        ("leases", "default/web"),
        ("events", "default/web"),
    ],
)
async def test_without_an_object_of_a_user_nothing_is_disturbed(resource: str, name: str) -> None:
    api = FakeApi.of(_replica_set(), core.Node(metadata=meta.ObjectMeta(name="web")))
    for kind in (coordination.Lease, core.Event):
        api.put(kind(metadata=meta.ObjectMeta(name="web", namespace="default")))
    labels = {"resource": resource, "object": name}
    assert not await interfere(cast("Client", api), Action.REMOVE, labels, FakeClock())
    assert [each.key for each in api.requests] == (["default/other"] if name == "default/other" else [])


async def test_a_job_is_created_again_without_its_generated_selector() -> None:
    job = batch.Job(metadata=meta.ObjectMeta(name="web", namespace="default"))
    generated = {"batch.kubernetes.io/controller-uid": "former"}
    job.spec.selector.matchLabels.update(generated)
    job.spec.template.metadata.labels.update({**generated, "controller-uid": "former", "app": "web"})
    api = FakeApi.of(job)
    assert await interfere(cast("Client", api), Action.RECREATE, {**WRITE, "resource": "jobs"}, FakeClock())
    again = api.find(kinds.JOB, "web", "default")
    assert again is not None
    assert not again.spec.HasField("selector")
    assert dict(again.spec.template.metadata.labels) == {"app": "web"}


async def test_an_object_is_created_again_when_its_finalizers_are_gone() -> None:
    api, clock = FakeApi.of(_replica_set()), FakeClock()
    api.deletes_gracefully = True
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(interfere, cast("Client", api), Action.RECREATE, WRITE, clock)
        await clock.wait_for_sleepers()
        api.remove(kinds.REPLICA_SET, "web")
        await clock.advance(1.0)
    found = api.find(kinds.REPLICA_SET, "web", "default")
    assert found is not None
    assert not found.metadata.HasField("deletionTimestamp")


async def test_all_objects_of_a_kind_are_changed_and_changed_back() -> None:
    api = FakeApi.of(_replica_set("a"), _replica_set("b"))
    before = len(api.log_of(kinds.REPLICA_SET))
    assert await touch_all(cast("Client", api), "replicasets", FakeClock()) == 2
    changed = [obj.metadata for _, obj in api.log_of(kinds.REPLICA_SET)[before:]]
    assert [(each.name, len(each.labels)) for each in changed] == [("a", 1), ("a", 0), ("b", 1), ("b", 0)]


def test_the_disturbance_is_a_sentence() -> None:
    assert Case.parse("scheduler:scheduler.bind.before=recreate@2").describe() == (
        "scheduler waits, and another client meanwhile replaces its object, at hit 2 of scheduler.bind.before"
    )
