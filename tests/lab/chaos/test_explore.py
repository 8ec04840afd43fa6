"""`nominee chaos explore` on real processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCENARIO = Path(__file__).parents[3] / "scenarios" / "chaos-pods.yaml"


def explore(*arguments: str, scenario: Path = SCENARIO) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    command = [sys.executable, "-P", "-m", "nominee.cli", "chaos", "explore", str(scenario), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.chaos
def test_a_crash_and_a_stale_watch_leave_the_cluster_usable(tmp_path: Path) -> None:
    cases = [
        "scheduler:scheduler.bind.after=crash",
        "scheduler:scheduler.bind.before=error",
        "kubelet-0:kubelet.status.before=pause",
        "scheduler:pods=stale",
    ]
    only = [word for case in cases for word in ("--only", case)]
    ran = explore(*only, "--dir", str(tmp_path), "-o", "json")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (report,) = json.loads(ran.stdout)["explorations"]
    assert {each["case"]: each["verdict"] for each in report["results"]} == dict.fromkeys(cases, "held")
    assert report["clusters"] == 1


def test_a_file_that_is_no_scenario_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text("kind: Pod\n")
    ran = explore(scenario=file)
    assert ran.returncode == 2
    assert "is no scenario" in ran.stderr


def test_nonsense_is_refused() -> None:
    for arguments, message in (
        (("--case", "scheduler"), "expected COMPONENT:FAILPOINT=ACTION"),
        (("--actions", "explode"), "crash, error, pause, delay"),
        (("--budget", "soon"), "10m or 90s"),
        (("--name", "other"), "chaos-pods"),
    ):
        ran = explore(*arguments)
        assert ran.returncode == 2
        assert message in ran.stderr
