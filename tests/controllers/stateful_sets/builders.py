"""Stateful sets, their revisions and pods for tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nominee.controllers.revisions import history
from nominee.controllers.stateful_sets.identity import new_pod
from nominee.controllers.stateful_sets.rollout import Observation, Plan, plan
from nominee.machinery.api.pb import apps, core
from nominee.machinery.runtime.clock import to_time
from nominee.machinery.wire.codec import from_json
from tests.controllers.builders import EPOCH, stamp

NOW = float(EPOCH + 1000)


def stateful_set(
    *,
    replicas: int = 3,
    image: str = "v1",
    start: int = 0,
    partition: int = 0,
    max_unavailable: int | str | None = None,
    strategy: str = "RollingUpdate",
    policy: str = "OrderedReady",
    claims: Iterable[str] = (),
    when_scaled: str = "Retain",
    when_deleted: str = "Retain",
    deleted: bool = False,
    **spec: Any,
) -> apps.StatefulSet:
    rolling: dict[str, Any] = {"partition": partition}
    if max_unavailable is not None:
        rolling["maxUnavailable"] = max_unavailable
    update: dict[str, Any] = {"type": strategy}
    if strategy == "RollingUpdate":
        update["rollingUpdate"] = rolling
    return from_json(
        apps.StatefulSet,
        {
            "metadata": {
                "name": "web",
                "namespace": "default",
                "uid": "set",
                "generation": 1,
                **({"deletionTimestamp": stamp(0)} if deleted else {}),
            },
            "spec": {
                "replicas": replicas,
                "serviceName": "svc",
                "podManagementPolicy": policy,
                "revisionHistoryLimit": 10,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web", "tier": "1"}, "annotations": {"note": "x"}},
                    "spec": {
                        "containers": [{"name": "c", "image": image}],
                        "volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "data", "emptyDir": {}}],
                    },
                },
                "volumeClaimTemplates": [
                    {"metadata": {"name": name, "labels": {"claim": name}}, "spec": {}} for name in claims
                ],
                "persistentVolumeClaimRetentionPolicy": {
                    "whenScaled": when_scaled,
                    "whenDeleted": when_deleted,
                },
                "ordinals": {"start": start},
                "updateStrategy": update,
                **spec,
            },
        },
    )


def revision(image: str, number: int) -> apps.ControllerRevision:
    """Return the revision of an image; its name is that of the image."""
    made = history.new_revision(stateful_set(image=image), number, image)
    made.metadata.name = image
    return made


def member(
    of: apps.StatefulSet,
    ordinal: int,
    state: str = "ready",
    *,
    image: str = "v1",
    ready_since: int = 0,
) -> core.Pod:
    """Return a pod of the set: `ready`, `running`, `pending`, `failed`, `succeeded`; `-ending` besides."""
    pod = new_pod(of, ordinal, revision(image, 1))
    pod.metadata.uid = f"uid-{ordinal}"
    name, _, ending = state.partition("-")
    pod.status.phase = {"ready": "Running"}.get(name, name.capitalize())
    if name == "ready":
        pod.status.conditions.add(
            type="Ready", status="True", lastTransitionTime=to_time(float(EPOCH + ready_since))
        )
    if ending:
        pod.metadata.deletionTimestamp.CopyFrom(to_time(NOW))
    return pod


def planned(
    of: apps.StatefulSet,
    pods: Iterable[core.Pod],
    *,
    claims: Mapping[str, core.PersistentVolumeClaim] | None = None,
    current: str = "v1",
    update: str = "v1",
    counts_unavailable: bool = True,
) -> Plan:
    known = claims or {}
    revisions = revision(current, 1), revision(update, 2)
    return plan(Observation(of, list(pods), known.get, *revisions, NOW, counts_unavailable))


def words(of: Plan) -> list[list[str]]:
    """Return the phases as `create 0 v1`, `delete 2`."""
    return [
        [
            f"{step.verb} {step.pod.metadata.name.removeprefix('web-')}"
            + (f" {step.pod.metadata.labels[history.REVISION_LABEL]}" if step.verb == "create" else "")
            for step in phase
        ]
        for phase in of.phases
    ]
