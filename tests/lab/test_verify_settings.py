"""The settings that invariants read are those of all processes of a component."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nominee.lab.history.verification.settings import Configured, of_arguments, settings_from, settings_of
from nominee.localcluster.supervisor.model.spec import ClusterSpec, ProcessSpec

GATE = "--feature-gates=WatchListClient=false"


def _configured(component: str, *arguments: str) -> Configured:
    found = of_arguments(component, arguments)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("processes", "components"),
    [
        ([_configured("controllers"), _configured("kubelet")], {"controllers", "kubelet"}),
        ([_configured("controllers", GATE), _configured("kubelet")], {"kubelet"}),
        ([_configured("controllers"), _configured("controllers", GATE)], set()),
        ([_configured("scheduler", "--emulated-version=1.34")], set()),
        ([], set()),
    ],
    ids=["on", "off", "not the same", "an older version", "no process"],
)
def test_components_that_begin_with_the_newest_state(
    processes: list[Configured], components: set[str]
) -> None:
    assert settings_from(processes).lists_newest == components


@contextmanager
def _autoscaler(directory: Path, *options: str) -> Iterator[None]:
    """A process with the options of an autoscaler, and the run file of one."""
    program = [sys.executable, "-c", "input()", *options]
    with subprocess.Popen(program, stdin=subprocess.PIPE) as process:
        run_file = {"component": "autoscaler", "pid": process.pid, "featureGates": {}, "compat": "1.36"}
        (directory / "run" / "autoscaler.json").write_text(json.dumps(run_file))
        yield
        process.communicate(b"\n")


@pytest.mark.parametrize(
    ("started", "unneeded_seconds"),
    [
        (None, 60.0),
        (["--scale-down-unneeded-time=1m"], 60.0),
        (["--scale-down-unneeded-time=1s"], None),
        ([], None),
    ],
    ids=["down", "as planned", "restarted with another", "restarted without"],
)
def test_options_of_a_scale_down_are_known_if_no_process_has_others(
    tmp_path: Path, started: list[str] | None, unneeded_seconds: float | None
) -> None:
    planned = ("python", "-m", "nominee.autoscaler", "--scale-down-unneeded-time=1m")
    process = ProcessSpec(name="autoscaler", component="autoscaler", argv=planned, stop_stage=0)
    plan = ClusterSpec(directory=tmp_path, processes=(process,))
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "plan.json").write_text(plan.to_json())
    if started is None:
        found = settings_of(tmp_path).scale_down
    else:
        with _autoscaler(tmp_path, *started):
            found = settings_of(tmp_path).scale_down
    assert (found.unneeded_seconds if found is not None else None) == unneeded_seconds
