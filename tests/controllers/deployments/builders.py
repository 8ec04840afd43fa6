"""Deployments and their replica sets for tests, and a world in which a rollout can be played."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nominee.controllers.deployments import rollout, sets
from nominee.controllers.deployments.rollout import CreateSet, DeleteSet, UpdateDeployment, UpdateSet
from nominee.controllers.planned_events import PlannedEvent
from nominee.machinery.api.pb import apps
from nominee.machinery.wire import codec
from tests.controllers.builders import EPOCH, owned_by, stamp


def deployment(
    name: str = "web",
    *,
    replicas: int = 3,
    image: str = "v1",
    strategy: str = "RollingUpdate",
    surge: int | str = "25%",
    unavailable: int | str = "25%",
    deadline: int | None = 600,
    history: int | None = 10,
    paused: bool = False,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> apps.Deployment:
    """Return a deployment as the API server would have it, with its defaults."""
    rolling = {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    body: dict[str, Any] = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": name}},
        "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "c", "image": image}]},
        },
        "strategy": {"type": strategy, **(rolling if strategy == "RollingUpdate" else {})},
        "paused": paused,
        **spec,
    }
    if deadline is not None:
        body["progressDeadlineSeconds"] = deadline
    if history is not None:
        body["revisionHistoryLimit"] = history
    metadata = {
        "name": name, "namespace": "default", "uid": "deployment-uid", "generation": 1,
        "creationTimestamp": stamp(0), "annotations": dict(annotations or {}),
    }  # fmt: skip
    return codec.from_json(apps.Deployment, {"metadata": metadata, "spec": body})


def replica_set(
    name: str, image: str, size: int, *, at: int = 0, revision: int = 0, largest: int = 0, desired: int = 0
) -> apps.ReplicaSet:
    """Return a replica set of the deployment `web`; `largest` and `desired` are its size annotations."""
    annotations = {sets.REVISION: str(revision)} if revision else {}
    if largest:
        annotations |= {sets.MAX: str(largest), sets.DESIRED: str(desired)}
    labels = {"app": "web", sets.HASH_LABEL: name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": image}]}}
    body: dict[str, Any] = {
        "metadata": {
            "name": name, "namespace": "default", "uid": name, "creationTimestamp": stamp(at),
            "labels": labels, "annotations": annotations,
            "ownerReferences": [owned_by("deployment-uid", kind="Deployment")],
        },
        "spec": {"replicas": size, "selector": {"matchLabels": labels}, "template": template},
        "status": {"replicas": size},
    }  # fmt: skip
    return codec.from_json(apps.ReplicaSet, body)


class World:
    """The API server and the replica set controller, which act at once and never fail."""

    def __init__(self, found: apps.Deployment) -> None:
        self.deployment = found
        self.sets: dict[str, apps.ReplicaSet] = {}
        self.now = float(EPOCH)
        self.events: list[str] = []
        self.running: set[str] = set()

    def step(self) -> rollout.Outcome:
        """Reconcile once and perform the actions."""
        outcome = rollout.sync(
            self.deployment, self.sets.values(), running=frozenset(self.running), now=self.now
        )
        for action in outcome.actions:
            match action:
                case CreateSet(made):
                    made.metadata.uid = f"uid-{len(self.sets)}-{made.metadata.name}"
                    made.metadata.generation = 1
                    made.metadata.creationTimestamp.seconds = int(self.now)
                    made.metadata.creationTimestamp.nanos = 0
                    self.sets[made.metadata.name] = made
                case UpdateSet(changed):
                    old = self.sets[changed.metadata.name]
                    changed.metadata.generation = old.metadata.generation + (changed.spec != old.spec)
                    self.sets[changed.metadata.name] = changed
                case DeleteSet(gone):
                    del self.sets[gone.metadata.name]
                case UpdateDeployment(changed):
                    self.deployment = changed
            event = action if isinstance(action, PlannedEvent) else getattr(action, "event", None)
            if event is not None:
                self.events.append(f"{event.reason}: {event.note}")
        if outcome.status is not None:
            self.deployment = outcome.status
        self.now += 1
        return outcome

    def pods(self, available: Mapping[str, int] | None = None, *, all_available: bool = False) -> None:
        """Create the pods of each set; so many of each set (by image) are available."""
        for each in self.sets.values():
            image = each.spec.template.spec.containers[0].image
            status, size = each.status, each.spec.replicas
            status.replicas = size
            count = (
                size if all_available else min(size, (available or {}).get(image, status.availableReplicas))
            )
            status.readyReplicas = status.availableReplicas = count
            status.terminatingReplicas = 0
            status.observedGeneration = each.metadata.generation

    def settle(self, *, steps_max: int = 50) -> None:
        """Step until nothing changes any more, with all pods available."""
        for _ in range(steps_max):
            self.pods(all_available=True)
            outcome = self.step()
            if not outcome.actions and outcome.status is None:
                return
        raise AssertionError("the rollout still changes something after 50 steps")

    def image(self, image: str) -> None:
        self.deployment.spec.template.spec.containers[0].image = image
        self.deployment.metadata.generation += 1

    def scale(self, replicas: int) -> None:
        self.deployment.spec.replicas = replicas
        self.deployment.metadata.generation += 1

    def sizes(self) -> dict[str, int]:
        """Return spec.replicas of each set, by image."""
        return {s.spec.template.spec.containers[0].image: s.spec.replicas for s in self.sets.values()}

    def set_of(self, image: str) -> apps.ReplicaSet:
        return next(s for s in self.sets.values() if s.spec.template.spec.containers[0].image == image)

    def revision(self, image: str) -> int:
        return sets.revision_of(self.set_of(image))

    def condition(self, type_: str) -> tuple[str, str, str] | None:
        for row in self.deployment.status.conditions:
            if row.type == type_:
                return (row.status, row.reason, row.message)
        return None

    def reason(self, type_: str) -> str:
        found = self.condition(type_)
        return found[1] if found else ""
