"""`nominee explain pod` asks a scheduler that runs."""

from __future__ import annotations

import json
import sys
from typing import Any

import anyio
import pytest

from tests.scheduler.e2e.objects import bound, node, pod, pod_when, scheduled_condition
from tests.support import retries
from tests.support.cluster import Cluster
from tests.support.patience import PATIENCE_SECONDS

COMMAND_SECONDS_MAX = PATIENCE_SECONDS


async def nominee(*words: str) -> tuple[int, str, str]:
    """A command to its end: exit status, output, errors."""
    with anyio.fail_after(COMMAND_SECONDS_MAX):
        done = await anyio.run_process([sys.executable, "-m", "nominee.cli", *words], check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.slow
async def test_a_pod_that_waits_and_one_that_runs(cluster: Cluster) -> None:
    cluster.arguments("apiserver", "--disable-admission-plugins=TaintNodesByCondition")
    await cluster.start("etcd", "apiserver", "scheduler")
    where = ("--dir", str(cluster.directory))
    async with cluster.client() as client:
        await retries.create(client, node("n1", cpu="2"))
        await client.create(pod("small", cpu="1500m"))
        assert await bound(client, "small") == "n1"
        await client.create(pod("big", cpu="1"))
        await pod_when(client, "big", lambda p: scheduled_condition(p) is not None)

        status, text, errors = await nominee("explain", "pod", "big", "-o", "json", *where)
        assert status == 0, errors
        found: dict[str, Any] = json.loads(text)
        assert (found["pod"], found["state"]) == ("default/big", "Unschedulable")
        assert found["attempts"][-1]["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
        assert found["explanation"]["rejectedNodes"][0]["reasons"] == ["Insufficient cpu"]

        status, text, errors = await nominee("explain", "pod/small", *where)
        assert status == 0, errors
        assert text.splitlines()[0] == "default/small  is bound to n1"
        assert "1 of 1 evaluated nodes are feasible" in text

        status, _, errors = await nominee("explain", "pod", "missing", *where)
        assert status == 1
        assert "scheduler has no pod default/missing" in errors
