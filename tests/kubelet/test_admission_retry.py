"""A pod that is removed while its kubelet waits leaves nothing behind, and does not come back."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from nominee.commands.chaos.explore import chaos

FILE = Path(__file__).parents[2] / "scenarios" / "chaos-pods.yaml"


def explored(directory: Path, case: str, file: Path = FILE, *options: str) -> str:
    """Return the output of one case of an exploration."""
    arguments = ["explore", str(file), *options, "--simulate", "--seed", "1", "--dir", str(directory)]
    return str(CliRunner().invoke(chaos, [*arguments, "--case", case]).stdout)


@pytest.mark.processes
def test_a_pod_that_was_removed_meanwhile_does_not_come_back(tmp_path: Path) -> None:
    # The third pod comes together with the last update of a pod that is gone before the retry.
    printed = explored(tmp_path, "kubelet-0:kubelet.admit.before=error@3")
    assert "1 held" in printed, printed


@pytest.mark.processes
def test_no_sandbox_is_created_for_a_pod_that_was_removed_meanwhile(tmp_path: Path) -> None:
    file = FILE.with_name("chaos-scheduling.yaml")
    printed = explored(tmp_path, "kubelet-0:kubelet.start.before=recreate", file, "--name", "chaos-devices")
    assert "1 held" in printed, printed
