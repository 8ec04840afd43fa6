"""The code of docs/testing.md and docs/plugin.md, as a reader would run it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from nominee.testing import Cluster, node, pod
from tests.support.patience import PATIENCE_SECONDS
from tests.testing.test_plugin import run_pytest

pytestmark = pytest.mark.processes
DOCS = Path(__file__).parents[2] / "docs"
POD = """
apiVersion: v1
kind: Pod
metadata: {name: a}
spec: {containers: [{name: c, image: pause}]}
"""


def blocks(page: str, language: str) -> list[str]:
    """Return the blocks of a language of a page."""
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)


def test_the_plugin_and_its_test(tmp_path: Path) -> None:
    plugin, test = blocks("plugin.md", "python")
    assert len(plugin[plugin.index("class ") :].splitlines()) <= 15
    (tmp_path / "team_nodes.py").write_text(plugin)
    (tmp_path / "test_team_nodes.py").write_text(test)
    assert "2 passed" in run_pytest(tmp_path)


@pytest.mark.slow
def test_the_plugin_in_a_cluster(tmp_path: Path) -> None:
    plugin, _ = blocks("plugin.md", "python")
    (configuration,) = blocks("plugin.md", "yaml")
    (tmp_path / "team_nodes.py").write_text(plugin)
    (tmp_path / "scheduler.yaml").write_text(configuration)
    options = ("--components", "etcd,apiserver,scheduler,controllers,kubelet")
    with Cluster(
        nodes=1,
        scheduler_config=tmp_path / "scheduler.yaml",
        plugins=["team_nodes:TeamNodes"],
        options=(*options, "--timeout", f"{PATIENCE_SECONDS:g}"),
    ) as cluster:
        cluster.patch(node("node-0"), {"metadata": {"labels": {"example.com/team": "a"}}})
        cluster.apply(POD)
        cluster.wait(
            pod("a"),
            "status.conditions.exists(c, c.message.contains('1 node belongs to team a'))",
            timeout=PATIENCE_SECONDS,
        )
        cluster.patch(node("node-0"), {"metadata": {"labels": {"example.com/team": None}}}, type="merge")
        cluster.wait(pod("a"), "has(spec.nodeName)", timeout=PATIENCE_SECONDS)


@pytest.mark.slow
def test_the_simulation(tmp_path: Path) -> None:
    _, simulation, _ = blocks("testing.md", "python")
    (scenario,) = blocks("testing.md", "yaml")
    (tmp_path / "my.yaml").write_text(scenario)
    (tmp_path / "test_it.py").write_text(simulation)
    assert "1 passed" in run_pytest(tmp_path)


@pytest.mark.slow
def test_the_cluster_and_the_fixture(tmp_path: Path) -> None:
    program, _, test = blocks("testing.md", "python")
    (tmp_path / "program.py").write_text(program)
    command = [sys.executable, "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Pod default/a created" in done.stdout
    (tmp_path / "test_it.py").write_text(test)
    assert "1 passed" in run_pytest(tmp_path)
