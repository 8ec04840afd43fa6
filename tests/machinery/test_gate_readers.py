"""The gates that each component is declared to read are those that its code reads."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from nominee.autoscaler.planning.snapshot.cluster_snapshot import ClusterSnapshot
from nominee.machinery.features import gates as features
from nominee.machinery.features.gate_sentences import SENTENCES
from nominee.machinery.features.gates import Gates
from nominee.machinery.runtime.clock import FakeClock

ROOT = Path(__file__).parents[2]
COMPONENTS = ("apiserver", "scheduler", "kubelet", "controllers")
SHARED = {
    "machinery/api/kinds.py": {"apiserver"},  # kinds that are not served without their gate
    "machinery/defaults/pod.py": {"apiserver"},
    "machinery/defaults/workloads.py": {"apiserver"},
    "machinery/process/component.py": {"scheduler", "controllers", "kubelet", "autoscaler"},  # its client
    "machinery/scheduling/label_keys.py": {"apiserver"},
}
"""Modules of machinery that read gates, and the components that call them."""
NOT_SIMULATED = {"SchedulerAsyncPreemption"}
"""Gates that plugins read when the autoscaler builds them, for extension points that it does not run."""


def names_in(folder: str) -> Iterator[tuple[str, str]]:
    """Yield (module, gate) for each gate that is named in the modules of a package."""
    known = {**{name: name for name in features.gates()}, **features.aliases()}
    for path in sorted((ROOT / folder).rglob("*.py")):
        module = path.relative_to(ROOT).as_posix()
        if module.startswith("machinery/features/"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in known:
                yield module, known[node.value]


@pytest.mark.parametrize("component", COMPONENTS)
def test_declared_gates_are_those_that_the_code_names(component: str) -> None:
    found = {gate for _, gate in names_in(component)}
    found |= {gate for module, gate in names_in("machinery") if component in SHARED[module]}
    assert found == features.read_by(component)


def test_the_autoscaler_reads_what_the_scheduler_plugins_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: set[str] = set()
    enabled = Gates.enabled

    def noted(self: Gates, name: str) -> bool:
        read.add(name)
        return enabled(self, name)

    monkeypatch.setattr(Gates, "enabled", noted)
    ClusterSnapshot([], gates=Gates("autoscaler"), clock=FakeClock())
    of_its_client = {gate for module, gate in names_in("machinery") if "autoscaler" in SHARED[module]}
    assert (read - NOT_SIMULATED) | of_its_client == features.read_by("autoscaler")
    assert not list(names_in("autoscaler"))


def test_each_gate_that_is_read_has_a_sentence() -> None:
    assert set(SENTENCES) == {name for name, gate in features.gates().items() if gate.components}
    for name, sentence in SENTENCES.items():
        assert sentence.endswith("."), name
        assert len(sentence) <= 160, name


def test_a_gate_that_a_component_does_not_read_is_a_warning() -> None:
    name = "NominatedNodeNameForExpectation"
    assert Gates("scheduler", overrides={name: False}).warnings == ()
    warning = f"feature gate {name} has no effect on kubelet; it is for scheduler"
    assert Gates("kubelet", overrides={name: False}).warnings == (warning,)
    assert "no component reads it" in Gates("kubelet", overrides={"OpportunisticBatching": False}).warnings[0]
    # GangScheduling is not read by the API server; what it reads needs it.
    version = features.Version(1, 36)
    overrides = {"GenericWorkload": True, "GangScheduling": True, "WorkloadAwarePreemption": True}
    assert Gates("apiserver", version, overrides).warnings == ()


def test_effective_gates_are_those_that_the_component_reads() -> None:
    found = Gates("controllers", overrides={"DRADeviceTaints": False}).effective()
    assert found == {
        "DRADeviceTaints": False,
        "DeploymentReplicaSetTerminatingReplicas": True,
        "MaxUnavailableStatefulSet": True,
        "MutableSchedulingDirectivesForSuspendedJobs": True,
        "TaintTolerationComparisonOperators": False,
        "WatchListClient": True,
    }
    assert Gates("another").effective() == Gates("another").all()
