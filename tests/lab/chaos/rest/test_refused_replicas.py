"""Replica sets whose pods the API server refuses, and their deployments, at rest."""

from __future__ import annotations

from dataclasses import replace

from nominee.lab.chaos.rest.workloads.owners import deployments, replica_sets
from tests.lab.chaos.rest.clusters import Manifests, changed, put, state


def test_a_replica_set_whose_pods_are_refused_has_fewer() -> None:
    """Its condition alone is no reason: the API server refuses pods that it should accept."""

    def found(*refused: str, replicas: int = 3, shows_failure: bool = True) -> list[str]:
        def change(manifests: Manifests) -> None:
            del manifests["quota"]
            manifests["replicas"]["spec"]["replicas"] = replicas
            conditions = [{"type": "ReplicaFailure", "status": "True"}] if shows_failure else []
            manifests["replicas"]["status"]["conditions"] = conditions

        cluster = replace(state(changed(change)), refusals=frozenset(refused))
        return [each.sentence for each in replica_sets(cluster)]

    is_refused, lacks = "ReplicaSet-web-1", ["has 2 live pods and 3 replicas"]
    assert found(is_refused) == []
    assert found() == found("ReplicaSet-other") == found(is_refused, shows_failure=False) == lacks
    assert found(is_refused, replicas=1) == ["has 2 live pods and 1 replicas"]


def test_a_deployment_waits_for_a_replica_set_whose_pods_are_refused() -> None:
    """Its condition alone is no reason, as above."""

    def change(manifests: Manifests) -> None:
        put("deployment/spec/replicas", 4)(manifests)
        put("replicas/spec/replicas", 3)(manifests)
        manifests["replicas"]["status"]["conditions"] = [{"type": "ReplicaFailure", "status": "True"}]

    lacks, cluster = "has 4 replicas, and its replica sets have 3", state(changed(change))
    assert lacks in [each.sentence for each in deployments(cluster)]
    is_refused = replace(cluster, refusals=frozenset({"ReplicaSet-web-1"}))
    assert lacks not in [each.sentence for each in deployments(is_refused)]
