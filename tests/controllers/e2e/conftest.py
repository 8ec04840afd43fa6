"""A cluster for the observations of Jobs, CronJobs and ReplicationControllers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.apiserver.rest.test_kubectl import Session
from tests.controllers.e2e.clusters import observed


@pytest.fixture(scope="package")
def batch_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Yield a session of kubectl with a running cluster of two nodes."""
    with observed(tmp_path_factory.mktemp("batch") / "cluster") as session:
        yield session
