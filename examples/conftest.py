"""The cluster of the examples: `pip install nominee pytest kubernetes lightkube kr8s kopf`, then `pytest`."""

import pytest


@pytest.fixture(scope="session")
def nominee_cluster_options():
    return {"nodes": 2, "options": ["--components", "etcd,apiserver,scheduler,controllers,kubelet"]}
