"""Health checks and /metrics/slis of the other components of a running cluster, under upstream's names."""

from __future__ import annotations

from pathlib import Path

import pytest

from nominee.machinery.process.run_files import RunFile
from nominee.machinery.process.serving_port.serving_client import ServingPort, request
from tests.support.patience import PATIENCE_SECONDS


def ask(directory: Path, component: str, path: str) -> str:
    found = RunFile.read(directory, component)
    assert found is not None
    port = ServingPort.of(found.http, directory)
    return request(port, path, timeout_seconds=PATIENCE_SECONDS).text


@pytest.mark.parametrize(
    ("component", "endpoint", "names"),
    [
        ("scheduler", "readyz", ("shutdown", "sched-handler-sync")),
        ("scheduler", "livez", ("ping",)),
        ("kubelet-0", "healthz", ("ping", "syncloop")),
        ("controllers", "healthz", ("replicaset-controller", "garbage-collector-controller")),
    ],
)
def test_checks(live: Path, component: str, endpoint: str, names: tuple[str, ...]) -> None:
    lines = ask(live, component, f"/{endpoint}?verbose").splitlines()
    assert {f"[+]{name} ok" for name in names} <= set(lines)
    assert lines[-1] == f"{endpoint} check passed"
    slis = ask(live, component, "/metrics/slis")
    for name in names:
        assert f'kubernetes_healthcheck{{name="{name}",type="{endpoint}"}} 1.0' in slis
        assert ask(live, component, f"/{endpoint}/{name}") == "ok"
