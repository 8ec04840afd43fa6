"""A gate that a component does not have, or not at its version, is reported at the field that sets it."""

from __future__ import annotations

from pathlib import Path

import pytest

from nominee.lab.scenario.fields.options import ComponentOptions
from nominee.lab.scenario.format.documents import InvalidScenarioError
from nominee.lab.scenario.format.reading import read_text
from nominee.lab.scenario.format.up_options import arguments_of, documents
from nominee.lab.scenario.record.recorded_cluster import cluster_of
from nominee.localcluster.plan import UpOptions, build

_HEAD = "{apiVersion: scenario.nominee.dev/v1alpha1, kind: Scenario, metadata: {name: a}, spec: {cluster: "
_NOMINATION = "NominatedNodeNameForExpectation"
_KUBELETS = "InPlacePodVerticalScalingExclusiveCPUs"
_PRE_ALPHA = (
    f"cannot set feature gate {_NOMINATION} to true, feature is PreAlpha at emulated version 1.33, min "
    "compatibility version 1.32"
)


def _problems(cluster: str, step: str = "{kill: scheduler}") -> list[str]:
    try:
        read_text(f"{_HEAD}{{{cluster}}}, steps: [{step}]}}}}", "a.yaml")
    except InvalidScenarioError as error:
        return [f"{problem.field}: {problem.message}" for problem in error.problems]
    return []


@pytest.mark.parametrize(
    ("cluster", "problem"),
    [
        pytest.param(
            f"without: [kubelet], featureGates: {{{_KUBELETS}: true}}",
            f"spec.cluster.featureGates.{_KUBELETS}: no component of this cluster has this gate; it is for "
            "kubelet",
            id="no component of the cluster has it",
        ),
        pytest.param(
            f"components: {{scheduler: {{featureGates: {{{_KUBELETS}: true}}}}}}",
            f"spec.cluster.components.scheduler.featureGates.{_KUBELETS}: scheduler does not have this gate; "
            "it is for kubelet",
            id="another component has it",
        ),
        pytest.param(
            f"components: {{kubelet-0: {{featureGates: {{{_NOMINATION}: true}}}}}}",
            f"spec.cluster.components.kubelet-0.featureGates.{_NOMINATION}: kubelet does not have this gate; "
            "it is for scheduler",
            id="a process",
        ),
        pytest.param(
            f"components: {{etcd: {{featureGates: {{{_NOMINATION}: true}}}}}}",
            "spec.cluster.components.etcd.featureGates: etcd has no emulated version and no feature gates",
            id="etcd has none",
        ),
        pytest.param(
            f'emulatedVersion: "1.33", featureGates: {{{_NOMINATION}: true}}',
            f"spec.cluster.featureGates.{_NOMINATION}: scheduler at version 1.33: {_PRE_ALPHA}",
            id="the version does not have it",
        ),
        pytest.param(
            f'featureGates: {{{_NOMINATION}: true}}, components: {{scheduler: {{emulatedVersion: "1.33"}}}}',
            f"spec.cluster.featureGates.{_NOMINATION}: scheduler at version 1.33: {_PRE_ALPHA}",
            id="the version of the component does not have it",
        ),
        pytest.param(
            f'components: {{scheduler: {{emulatedVersion: "1.33", featureGates: {{{_NOMINATION}: true}}}}}}',
            f"spec.cluster.components.scheduler.featureGates.{_NOMINATION}: scheduler at version 1.33: "
            f"{_PRE_ALPHA}",
            id="the component's own gate",
        ),
        pytest.param(
            'emulatedVersion: "1.33", featureGates: {OpportunisticBatching: true}',
            "spec.cluster.featureGates.OpportunisticBatching: cannot set feature gate OpportunisticBatching "
            "to true, feature is PreAlpha at emulated version 1.33, min compatibility version 1.32",
            id="no component reads it",
        ),
        pytest.param(
            'emulatedVersion: "1.36", components: {scheduler: {featureGates: {GangScheduling: true}}}',
            "spec.cluster.components.scheduler.featureGates.GangScheduling: scheduler at version 1.36: "
            "GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload]",
            id="a gate that it needs is off",
        ),
    ],
)
def test_the_field_of_a_cluster_is_named(cluster: str, problem: str) -> None:
    assert _problems(cluster) == [problem]


@pytest.mark.parametrize(
    ("cluster", "step", "problem"),
    [
        pytest.param(
            "",
            f"{{restart: {{component: kubelet, featureGates: {{{_NOMINATION}: true}}}}}}",
            f"spec.steps[0].restart.featureGates.{_NOMINATION}: kubelet does not have this gate; it is for "
            "scheduler",
            id="another component has it",
        ),
        pytest.param(
            f"featureGates: {{{_NOMINATION}: true}}",
            '{restart: {component: scheduler, emulatedVersion: "1.33"}}',
            f"spec.steps[0].restart.emulatedVersion: scheduler at version 1.33: {_PRE_ALPHA}",
            id="the new version does not have it",
        ),
    ],
)
def test_the_field_of_a_step_is_named(cluster: str, step: str, problem: str) -> None:
    assert _problems(cluster, step) == [problem]


def test_every_gate_is_reported_at_its_field() -> None:
    cluster = f'emulatedVersion: "1.33", featureGates: {{{_NOMINATION}: true, SchedulerQueueingHints: true}}'
    own = "components: {scheduler: {featureGates: {VolumeLimitScaling: true}}}"
    fields = [problem.partition(":")[0] for problem in _problems(f"{cluster}, {own}")]
    assert fields == [
        "spec.cluster.components.scheduler.featureGates.VolumeLimitScaling",
        f"spec.cluster.featureGates.{_NOMINATION}",
    ]


def test_mistakes_in_gates_are_reported_with_all_others() -> None:
    cluster = f"featureGates: {{Unknown: true, {_KUBELETS}: true}}, without: [kubelet, nothing]"
    own = f'components: {{scheduler: {{emulatedVersion: "1.1", featureGates: {{{_NOMINATION}: true}}}}}}'
    steps = (
        f'{{restart: {{component: scheduler, emulatedVersion: "1.33", featureGates: {{{_KUBELETS}: true}}}}}}'
    )
    fields = [problem.partition(":")[0] for problem in _problems(f"{cluster}, {own}", steps)]
    assert fields == [
        "spec.cluster.components.scheduler.emulatedVersion",
        f"spec.cluster.featureGates.{_KUBELETS}",
        "spec.cluster.featureGates.Unknown",
        "spec.cluster.without[1]",
        "spec.steps[0].restart.featureGates",
        f"spec.steps[0].restart.featureGates.{_KUBELETS}",
    ]


def test_a_step_does_not_repeat_the_mistakes_of_its_cluster() -> None:
    cluster = f'components: {{scheduler: {{emulatedVersion: "1.33", featureGates: {{{_NOMINATION}: true}}}}}}'
    step = "{restart: {component: scheduler, featureGates: {SchedulerAsyncPreemption: false}}}"
    fields = [problem.partition(":")[0] for problem in _problems(cluster, step)]
    assert fields == [f"spec.cluster.components.scheduler.featureGates.{_NOMINATION}"]


def test_a_gate_of_all_is_for_the_components_that_have_it() -> None:
    text = f'featureGates: {{{_NOMINATION}: true}}, components: {{kubelet: {{emulatedVersion: "1.33"}}}}'
    (scenario,) = read_text(f"{_HEAD}{{{text}}}, steps: [{{kill: scheduler}}]}}}}", "a.yaml")
    gates = documents(scenario.cluster)["up.yaml"]["featureGates"]
    assert {name: own for name, own in gates.items() if own} == {"scheduler": {_NOMINATION: True}}
    options = ComponentOptions(feature_gates={_KUBELETS: True})
    assert arguments_of(scenario.cluster, "kubelet", options) == [f"--feature-gates={_KUBELETS}=true"]


def test_a_recorded_cluster_has_the_gates_that_its_components_have(tmp_path: Path) -> None:
    options = UpOptions(
        directory=tmp_path,
        components=("etcd", "apiserver", "scheduler"),
        gates={"scheduler": {_NOMINATION: False, _KUBELETS: True}, "apiserver": {_NOMINATION: False}},
    )
    components = cluster_of(build(options).spec)["components"]
    assert components == {"scheduler": {"featureGates": {_NOMINATION: False}}}
