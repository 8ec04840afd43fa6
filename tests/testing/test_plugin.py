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
from tests.mutations.launch import ROOT
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
    while not any(each["reason"] == "FailedScheduling" for each in nominee_cluster.list("events")):
        pass  # the event comes after the condition
    nominee_cluster.wait(pod("large"), "status.phase == 'Running'", timeout=2)

def test_without_a_cluster():
    raise RuntimeError("of its own")

def test_the_nomination_is_cleared(nominee_cluster):
    gates = '{schedulingGates: [{name: later}], '
    text = POD.replace("large", "a").replace('"1000"', "10m").replace("{containers", gates + "containers")
    nominee_cluster.apply(text)
    nominee_cluster.patch(pod("a"), {"status": {"nominatedNodeName": "node-0"}}, subresource="status")
    nominee_cluster.patch(pod("a"), {"spec": {"schedulingGates": None}}, type="merge")
    bound = nominee_cluster.wait(pod("a"), "spec.nodeName != ''", timeout=60)
    assert "nominatedNodeName" not in bound["status"]

def test_a_process_is_down(nominee_cluster):
    nominee_cluster.stop("scheduler")
    raise RuntimeError
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


DEFECT = """
from tests.mutations.launch import SELF
from tests.mutations.patch import Edit, apply

words = f'"{SELF}", "nomination-not-cleared", "--", object_history.COMMAND, '
apply(Edit("nominee.testing.cluster:Cluster._up", "object_history.COMMAND, ", words))
"""


def run_pytest(folder: Path, *words: str) -> str:
    """Run pytest with the plugin in a folder, and return its output."""
    # Once, also where the installed metadata have the entry point.
    plugin = ("-p", "no:nominee", "-p", "nominee.testing.plugin", "-p", "no:cacheprovider")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment["PYTHONPATH"] = str(ROOT)
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


@pytest.mark.slow
def test_the_report_of_a_failed_test_and_the_kept_cluster(tmp_path: Path) -> None:
    write(tmp_path, "etcd,apiserver,scheduler,controllers,kubelet", FAILING)
    with (tmp_path / "conftest.py").open("a", encoding="utf-8") as file:
        file.write(DEFECT)
    output = run_pytest(tmp_path, "--nominee-keep")
    found = re.search(r"nominee down --dir (\S+)", output)
    assert found is not None, output
    directory = Path(found[1])
    try:
        assert "4 failed, 1 passed" in output
        down = output.partition("_ test_a_process_is_down _")[2]
        assert re.search(r"nominee: processes that are not ready -+\nscheduler: down, restarts 0", down)
        before, _, failed = output.partition("_ test_that_fails _")
        failed, _, own = failed.partition("_ test_without_a_cluster _")
        own, _, defect = own.partition("_ test_the_nomination_is_cleared _")
        assert "processes that are not ready" not in failed
        assert "nominee: " not in before
        assert "nominee: " not in own
        assert "not status.phase == 'Running' within 2 s; status.phase = Pending" in failed
        assert re.search(r"- nominee: events in namespace test-that-fails-2 -", failed)
        assert re.search(
            r"FailedScheduling +pod/large.* 0/1 nodes are available: 1 Insufficient cpu", failed
        ), failed
        assert re.search(r"revision \d+, .*: Pod test-that-fails-2/large created", failed)
        # Logs are cut by time: the end of the earlier namespace may still be there, its beginning is not.
        assert "Successfully bound pod to node pod=test-passes" not in failed
        assert "not-shown" not in failed.partition("nominee: events in namespace")[2]
        # The planted defect: the binding does not clear the nomination.
        assert "AssertionError: assert 'nominatedNodeName' not in {" in defect
        defect = defect.partition("_ test_a_process_is_down _")[0]
        revisions = re.findall(r"(?:revision .*|\.\.\. .* lines before)\n((?:    .*\n)+)", defect)
        (binding,) = (each for each in revisions if 'spec.nodeName: "node-0"' in each)
        assert "nominatedNodeName" not in binding
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
