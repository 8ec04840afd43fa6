"""The pytest plugin, in runs of pytest of another project."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nominee.localcluster.supervisor.directory import StateDirectory, lock_holder
from nominee.testing import Cluster, pod
from nominee.testing.report import last_lines
from tests.nominee.test_cli import nominee
from tests.support.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.processes
OPTIONS = """
import pytest

@pytest.fixture(scope="session")
def nominee_cluster_options():
    return {{"nodes": 1, "options": ("--timeout", "{seconds:g}", "--components", "{components}")}}
"""
FAILING = '''
from nominee.testing import pod

POD = """
apiVersion: v1
kind: Pod
metadata: {name: large}
spec: {containers: [{name: c, image: pause, resources: {requests: {cpu: "1000"}}}]}
"""

def test_passes(nominee_cluster):
    assert nominee_cluster.namespace.startswith("test-passes-")
    nominee_cluster.apply(POD.replace("large", "not-shown").replace('"1000"', '"1"'))
    nominee_cluster.wait(pod("not-shown"), "status.phase == 'Running'", timeout=60)

def test_that_fails(nominee_cluster):
    nominee_cluster.apply(POD)
    nominee_cluster.wait(pod("large"), {"condition": "PodScheduled=False"}, timeout=60)
    nominee_cluster.wait(pod("large"), "status.phase == 'Running'", timeout=0.5)

def test_without_a_cluster():
    raise RuntimeError("of its own")
'''
PASSING = """
import pytest
from nominee.testing import ref

@pytest.fixture
def small(nominee_cluster_factory):
    with open("clusters", "a") as file:
        for cluster in nominee_cluster_factory.clusters:
            print(cluster.directory, file=file)

@pytest.mark.parametrize("number", range(4))
def test_passes(nominee_cluster, small, number):
    words = nominee_cluster.directory.joinpath("run/plan.json").read_text().split()
    assert '"1.35",' in words
    assert '"ClearingNominatedNodeNameAfterBinding=false"' in words
    assert nominee_cluster.find(ref("Namespace", nominee_cluster.namespace))
"""


def run_pytest(folder: Path, *words: str) -> str:
    """Run pytest with the plugin in a folder, and return its output."""
    # Once, also where the installed metadata have the entry point.
    plugin = ("-p", "no:nominee", "-p", "nominee.testing.plugin", "-p", "no:cacheprovider")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", *plugin, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE_SECONDS,
        check=False,
    ).stdout


def write(folder: Path, components: str, tests: str) -> None:
    """Write a project with one file of tests."""
    (folder / "conftest.py").write_text(OPTIONS.format(components=components, seconds=PATIENCE_SECONDS))
    (folder / "test_it.py").write_text(tests)


def test_the_report_of_a_failed_test_and_the_kept_cluster(tmp_path: Path) -> None:
    write(tmp_path, "etcd,apiserver,scheduler,controllers,kubelet", FAILING)
    output = run_pytest(tmp_path, "--nominee-keep")
    found = re.search(r"nominee down --dir (\S+)", output)
    assert found is not None, output
    directory = Path(found[1])
    try:
        assert "2 failed, 1 passed" in output
        before, _, failed = output.partition("_ test_that_fails _")
        failed, _, own = failed.partition("_ test_without_a_cluster _")
        assert "nominee: " not in before
        assert "nominee: " not in own.partition("short test summary")[0]
        assert "not status.phase == 'Running' within 0.5 s; status.phase = Pending" in failed
        assert re.search(r"- nominee: events in namespace test-that-fails-2 -", failed)
        assert re.search(
            r"FailedScheduling +pod/large.* 0/1 nodes are available: 1 Insufficient cpu", failed
        ), failed
        assert re.search(r"revision \d+, .*: Pod test-that-fails-2/large created", failed)
        # Logs are cut by time: the end of the earlier namespace may still be there, its beginning is not.
        assert "Successfully bound pod to node pod=test-passes" not in failed
        assert "not-shown" not in failed.partition("nominee: events in namespace")[2]
        # The cluster runs, with the objects of the failed test.
        kept = Cluster.attach(directory, namespace="test-that-fails-2")
        assert kept.get(pod("large"))["status"]["phase"] == "Pending"
    finally:
        nominee("down", "--kill", directory=directory)
    assert lock_holder(StateDirectory(directory)) is None
    shutil.rmtree(directory)


@pytest.mark.slow
def test_each_worker_has_its_own_cluster_until_the_end(tmp_path: Path) -> None:
    write(tmp_path, "etcd,apiserver", PASSING)
    gate = "--nominee-feature-gates=apiserver=ClearingNominatedNodeNameAfterBinding=false"
    output = run_pytest(tmp_path, "-n", "2", "--nominee-version=1.35", gate)
    assert "4 passed" in output, output
    directories = set((tmp_path / "clusters").read_text().split())
    assert len(directories) == 2
    assert not any(Path(each).exists() for each in directories)


def test_a_run_without_clusters_imports_the_plugin_alone() -> None:
    text = (
        "import sys, pytest; before = set(sys.modules); import nominee.testing.plugin; "
        "print(*sorted(set(sys.modules) - before))"
    )
    found = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["nominee", "nominee.testing", "nominee.testing.plugin"]


def test_texts_are_cut_at_their_beginning() -> None:
    assert last_lines(["a", "b", "c"], 2) == "... 1 lines before\nb\nc"
    assert last_lines(["a", "b"], 2) == "a\nb"
    assert last_lines([], 2) == ""
