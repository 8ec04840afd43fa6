"""Changes of pods that were not handled are handled later, as the watch has the pods then."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from nominee.commands.chaos.explore import chaos

FILE = Path(__file__).parents[2] / "scenarios" / "chaos-pods.yaml"


@pytest.mark.processes
def test_a_pod_that_was_removed_meanwhile_does_not_come_back(tmp_path: Path) -> None:
    # The third pod comes together with the last update of a pod that is gone before the retry.
    case = ["--case", "kubelet-0:kubelet.admit.before=error@3"]
    arguments = ["explore", str(FILE), "--simulate", "--seed", "1", "--dir", str(tmp_path), *case]
    ran = CliRunner().invoke(chaos, arguments)
    assert "1 held" in ran.stdout, ran.stdout
