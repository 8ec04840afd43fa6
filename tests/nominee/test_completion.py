"""What Tab offers: commands, components, versions, gates and failpoints, in a real bash."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from nominee.completion import candidates
from nominee.localcluster import declared_failpoints as declared
from nominee.localcluster.components import BY_NAME
from tests.nominee.test_cli import nominee
from tests.support.patience import PATIENCE_SECONDS

GATE = "NominatedNodeNameForExpectation"
# What a script of ours gives bash: the words with which it replaces the one before the cursor.
ASK = """
nominee() { "$PYTHON" -P -m nominee.cli "$@"; }
source "$SCRIPT"
compopt() { echo "compopt $*"; }
COMP_LINE=$1 COMP_POINT=${#1}
_nominee_completion nominee
printf '%s\\n' "${COMPREPLY[@]}"
"""
IMPORT_ALL = """
import importlib, pathlib, sys
from nominee.machinery.runtime import failpoints
module = importlib.import_module(sys.argv[1])
for path in pathlib.Path(module.__path__[0]).rglob("*.py"):
    parts = path.relative_to(module.__path__[0]).with_suffix("").parts
    if parts[-1] not in ("__init__", "__main__"):
        importlib.import_module(".".join((sys.argv[1], *parts)))
print("\\n".join(point.name for point in failpoints.REGISTRY.states()))
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return what `nominee completion bash` prints."""
    file = tmp_path_factory.mktemp("completion") / "script"
    file.write_text(nominee("completion", "bash").stdout)
    return file


def complete(line: str, script: Path) -> list[str]:
    """The words that bash offers behind a line."""
    done = subprocess.run(
        ["bash", "-c", ASK, "bash", line],
        env={"PYTHON": sys.executable, "SCRIPT": str(script), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    assert not done.stderr
    return done.stdout.split("\n")[:-1]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("nominee rest", ["restart"]),
        ("nominee restart aut", ["autoscaler"]),
        ("nominee up --components etcd,a", ["etcd,apiserver", "etcd,autoscaler"]),
        # No space after an equals sign: the value follows.
        ("nominee up --emulated-version sche", ["compopt -o nospace", "scheduler="]),
        ("nominee up --feature-gates scheduler=Nomi", ["compopt -o nospace", f"{GATE}="]),
        ("nominee up --feature-gates=scheduler=Nomi", ["compopt -o nospace", f"{GATE}="]),
        (f"nominee up --feature-gates scheduler={GATE}=", ["true", "false"]),
        (
            "nominee up --failpoints scheduler=scheduler.bind.bef",
            ["compopt -o nospace", "scheduler.bind.before="],
        ),
        (
            "nominee failpoint kubelet-0 kubelet.actu",
            ["kubelet.actuate.after", "kubelet.actuate.before", "kubelet.actuate.between"],
        ),
        ("nominee failpoint scheduler scheduler.bind.before c", ["crash"]),
        ("nominee failpoint etcd ", [""]),
        ("nominee fault scheduler drop-res", ["drop-response"]),
        ("nominee fault scheduler --method Bi", ["Bind"]),
        ("nominee fault scheduler --kind leas", ["leases"]),
        ("nominee up --replicas sche", ["compopt -o nospace", "scheduler="]),
        ("nominee up --replicas etcd=", ["2", "3", "4", "5"]),
        ("nominee gates NominatedN", [GATE]),
        ("nominee gates --diff 1.35 1.37", ["1.37"]),
        ("nominee gates --diff 1.32 1.37 NominatedN", [GATE]),
        ("nominee restart scheduler --emulated-version 1.36", ["1.36"]),
        (f"nominee restart scheduler --feature-gates {GATE}=f", ["false"]),
        # Another name of a gate
        ("nominee gates SchedulerPreemptionFor", ["SchedulerPreemptionForPodResize"]),
        (
            "nominee up --feature-gates scheduler=SchedulerPreemptionFor",
            ["compopt -o nospace", "SchedulerPreemptionForPodResize="],
        ),
        ("nominee get po", ["poddisruptionbudgets", "podgroups", "pods", "podtemplates", "po"]),
        ("nominee get -A st", ["statefulsets", "storageclasses", "sts"]),
        ("nominee delete deplo", ["deployments", "deploy"]),
        ("nominee patch nod", ["nodes"]),
        ("nominee completion ", ["bash", "zsh", "fish"]),
    ],
)  # fmt: skip
def test_what_bash_offers(line: str, expected: list[str], script: Path) -> None:
    assert complete(line, script) == expected


def test_the_processes_of_a_cluster_are_offered(tmp_path: Path, script: Path) -> None:
    (tmp_path / "run").mkdir()
    plan = {"processes": [{"name": "etcd"}, {"name": "kubelet-0"}, {"name": "kubelet-1"}]}
    (tmp_path / "run" / "plan.json").write_text(json.dumps(plan))
    assert complete(f"nominee restart --dir {tmp_path} kub", script) == ["kubelet", "kubelet-0", "kubelet-1"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_scripts_of_other_shells(shell: str) -> None:
    script = nominee("completion", shell).stdout
    assert "_nominee_completion" in script
    assert ("-S ''" in script) is (shell == "zsh")  # no space after an equals sign; fish adds none by itself


def test_gates_of_a_list_belong_to_the_component_named_last() -> None:
    offered = candidates.feature_gates(f"scheduler={GATE}=true,kubelet=InPlacePodVerticalScaling=false,")
    names = {word.rpartition(",")[2].rstrip("=") for word in offered}
    assert "InPlacePodVerticalScalingExclusiveCPUs" in names
    assert "SchedulerAsyncPreemption" not in names
    assert {"scheduler", "kubelet"} <= names


def test_gates_without_a_component_are_those_of_all() -> None:
    offered = candidates.feature_gates("")
    assert {f"{GATE}=", "scheduler=", "kubelet="} <= set(offered)
    assert "etcd=" not in offered
    assert candidates.feature_gates(f"{GATE}=t") == [f"{GATE}=true", f"{GATE}=false"]


def test_versions_of_a_list() -> None:
    offered = candidates.versions("scheduler=1.36,")
    assert {"scheduler=1.36,kubelet=", "scheduler=1.36,1.35"} <= set(offered)


@pytest.mark.parametrize("name", ["apiserver", "scheduler", "controllers", "cloud", "kubelet", "autoscaler"])
def test_the_failpoints_found_in_sources_are_those_declared(name: str) -> None:
    component = BY_NAME[name]
    done = subprocess.run(
        [sys.executable, "-P", "-c", IMPORT_ALL, component.module],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    registered = {point for point in done.stdout.split() if point.startswith(f"{name}.")}
    assert registered
    assert declared.failpoints(component) == sorted(registered)
