"""status.terminatingReplicas of replica sets and deployments, which only newer versions know."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.apiserver.kinds.apps.deployments import DeploymentStatusStrategy
from nominee.apiserver.kinds.apps.replica_sets import ReplicaSetStatusStrategy
from nominee.apiserver.kinds.strategy import Environment
from nominee.machinery.api import kinds
from nominee.machinery.features.gates import Gates, Version
from nominee.machinery.runtime.clock import to_time


@pytest.mark.parametrize("strategy", [
    ReplicaSetStatusStrategy(kinds.REPLICA_SET), DeploymentStatusStrategy(kinds.DEPLOYMENT),
])  # fmt: skip
@pytest.mark.parametrize(
    ("version", "had_it", "kept"),
    [(Version(1, 36), False, True), (Version(1, 34), False, False), (Version(1, 34), True, True)],
)
def test_it_is_kept_where_it_is_known(strategy: Any, version: Version, had_it: bool, kept: bool) -> None:
    new, old = strategy.kind.message(), strategy.kind.message()
    new.status.terminatingReplicas = 1
    if had_it:
        old.status.terminatingReplicas = 2
    strategy.prepare_for_update(new, old, Environment(Gates("apiserver", version), to_time(0.0)))
    assert new.status.HasField("terminatingReplicas") is kept
