"""A planted defect, and the way to its cause: the commands that the failed run prints, and nothing else.

The defect: a binding does not clear the nomination. What pytest prints of it is in tests/testing/test_plugin.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from nominee.command_group import nominee
from tests.mutations.launch import ROOT, SELF
from tests.support.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.slow

SCENARIO = ROOT / "tests/mutations/scenarios/preemption.yaml"
MATRIX = f"""
apiVersion: skew.nominee.dev/v1alpha1
kind: SkewMatrix
metadata: {{name: planted, title: a planted defect}}
spec:
  rows:
  - name: preemption
    scenario: {SCENARIO}
    versions: {{scheduler: ["1.37"]}}
"""


@pytest.mark.processes
@pytest.mark.parametrize(
    "words",
    [
        ["scenario", "run", str(SCENARIO)],
        ["chaos", "explore", str(SCENARIO), "--stop"],
        ["skew", "run", "matrix.yaml", "--report", "found"],
    ],
    ids=lambda words: words[0],
)
def test_what_is_printed_leads_to_the_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("matrix.yaml").write_text(MATRIX, encoding="utf-8")
    launcher = [sys.executable, "-m", SELF, "nomination-not-cleared", "--", "nominee.cli"]
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    ran = subprocess.run(
        [*launcher, *words, "--simulate"],
        capture_output=True,
        text=True,
        check=False,
        timeout=2 * PATIENCE_SECONDS,
    )
    printed = ran.stdout + ran.stderr
    assert ran.returncode == 1, printed
    assert re.search("observed: .*nominatedNodeName (= )?node-0", printed), printed
    (command,) = set(re.findall(r"history: (nominee history .*)", printed))
    assert "Pod/default/high" in command
    followed = CliRunner().invoke(nominee, shlex.split(command)[1:])
    assert followed.exit_code == 0, followed.output
    # The binding is there, and it leaves the nomination as it was.
    updates = re.findall(r"revision .* updated, .*\n((?:    .*\n)+)", followed.stdout)
    (binding,) = (each for each in updates if 'spec.nodeName: "node-0"' in each)
    assert "nominatedNodeName" not in binding
    assert 'status.nominatedNodeName: "node-0"' in followed.stdout
    assert "Nomination written pod=default/high node=node-0" in followed.stdout
