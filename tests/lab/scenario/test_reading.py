"""Reading scenario files: what is accepted, and messages that name file, line and field."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from nominee import scenarios
from nominee.lab.scenario.conditions.combined import AllOf
from nominee.lab.scenario.conditions.object import ObjectCondition
from nominee.lab.scenario.fields.comparison import Comparison
from nominee.lab.scenario.format.documents import InvalidScenarioError
from nominee.lab.scenario.format.model import Scenario
from nominee.lab.scenario.format.reading import read_file, read_text
from nominee.lab.scenario.steps.expect import Expect, Mode
from nominee.lab.scenario.steps.wait import Wait

_HEAD = """\
apiVersion: scenario.nominee.dev/v1alpha1
kind: Scenario
metadata: {name: a}
spec:
"""
FOLDER = Path(scenarios.__file__).resolve().parent
FILES = sorted(FOLDER.glob("*.yaml"))


def example() -> str:
    """Return the complete example of docs/scenarios.md."""
    page = (FOLDER.parent / "docs" / "scenarios.md").read_text(encoding="utf-8")
    block = page[page.index("    apiVersion: scenario.nominee.dev") :].partition("\n\nA file may have")[0]
    return textwrap.dedent(block)


def _read(spec: str) -> Scenario:
    (scenario,) = read_text(_HEAD + spec, "a.yaml")
    return scenario


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            "  stps: []\n  steps: [kill: scheduler]\n",
            "a.yaml:5: spec.stps: unknown field; did you mean steps?",
        ),
        ("  steps: []\n", "a.yaml:5: spec.steps: must not be empty"),
        ("  timeoutSeconds: 3\n", "a.yaml:4: spec: the field steps is missing"),
        (
            "  steps:\n  - wait: {object: {kind: Pdo, name: a}}\n",
            "a.yaml:6: spec.steps[0].wait.object.kind: unknown kind 'Pdo'; did you mean Pod?",
        ),
        (
            "  steps:\n  - kill: schduler\n",
            "a.yaml:6: spec.steps[0].kill: unknown component 'schduler'; did you mean scheduler?",
        ),
        (
            "  steps:\n  - kill: 3\n",
            "a.yaml:6: spec.steps[0].kill: expected string or object, got number",
        ),
        (
            "  steps:\n  - kill: scheduler\n    pause: scheduler\n",
            "a.yaml:6: spec.steps[0]: a step has exactly one of apply, patch, delete, wait, expect, start, "
            "stop, kill, pause, resume, restart, failpoint, fault, clock, drain, cordon, uncordon, "
            "nodeGroup, checkpoint; got kill and pause",
        ),
        (
            "  steps:\n  - failpoint: {component: scheduler, name: scheduler.bind.befor, action: pause}\n",
            "a.yaml:6: spec.steps[0].failpoint.name: scheduler has no failpoint 'scheduler.bind.befor'; "
            "did you mean scheduler.bind.before or scheduler.prebind.before or scheduler.bind.after?",
        ),
        (
            "  steps:\n  - failpoint: {component: scheduler, name: scheduler.bind.before, action: stop}\n",
            "a.yaml:6: spec.steps[0].failpoint.name: stop: expected off, crash, error, sleep or pause",
        ),
        (
            "  steps:\n  - fault: {component: etcd-leader, action: delay(5)}\n",
            "a.yaml:6: spec.steps[0].fault.action: links between etcd members can be cut, or healed by off",
        ),
        (
            "  steps:\n  - fault: {component: etcd-1, action: cut, kind: pods}\n",
            "a.yaml:6: spec.steps[0].fault: a link between etcd members is cut as a whole, without method "
            "and kind",
        ),
        (
            "  cluster: {featureGates: {NominatedNodeNameForExpectations: true}}\n"
            "  steps: [kill: scheduler]\n",
            "a.yaml:5: spec.cluster.featureGates.NominatedNodeNameForExpectations: unknown feature gate "
            "'NominatedNodeNameForExpectations'; did you mean NominatedNodeNameForExpectation?",
        ),
        (
            "  cluster: {components: {controllers: {replicas: 2}}}\n  steps: [kill: scheduler]\n",
            "a.yaml:5: spec.cluster.components.controllers.replicas: at most 1 for controllers; there may be "
            "several etcd, apiserver, scheduler, autoscaler",
        ),
        (
            '  cluster: {emulatedVersion: "1.31"}\n  steps: [kill: scheduler]\n',
            "a.yaml:5: spec.cluster.emulatedVersion: emulation version 1.31 is not between [1.32, 1.38]",
        ),
        (
            '  cluster: {emulatedVersion: "1.33"}\n'
            "  steps: [restart: {component: scheduler, "
            "featureGates: {NominatedNodeNameForExpectation: true}}]\n",
            "a.yaml:6: spec.steps[0].restart.featureGates.NominatedNodeNameForExpectation: scheduler at "
            "version 1.33: cannot set feature gate NominatedNodeNameForExpectation to true, feature is "
            "PreAlpha at emulated version 1.33, min compatibility version 1.32",
        ),
        (
            "  cluster: {featureGates: {SchedulerQueueingHints: false}}\n  steps: [kill: scheduler]\n",
            "a.yaml:5: spec.cluster.featureGates.SchedulerQueueingHints: scheduler: cannot set feature gate "
            "SchedulerQueueingHints to false, feature is locked to true",
        ),
        (
            "  invariants: {except: [{name: one-node-for-pod, reason: x}]}\n  steps: [kill: scheduler]\n",
            "a.yaml:5: spec.invariants.except[0].name: unknown invariant 'one-node-for-pod'; did you mean "
            "one-node-per-pod?",
        ),
        (
            "  steps:\n  - apply:\n      apiVersion: v1\n      kind: Pod\n      metadata: {name: a}\n"
            "      spec:\n        containrs: []\n",
            "a.yaml:11: spec.steps[0].apply.spec.containrs: unknown field; "
            "did you mean containers or initContainers?",
        ),
        (
            '  steps:\n  - wait: {object: {kind: Pod, name: "${NODE}"}}\n',
            "a.yaml:6: spec.steps[0].wait: ${NODE} is not saved by an earlier step; saved: no variable",
        ),
        (
            "  steps:\n  - expect: {never: {object: {kind: Pod, name: a}}}\n",
            "a.yaml:6: spec.steps[0].expect: never needs seconds",
        ),
        (
            "  steps:\n  - wait: {object: {kind: Pod, name: a, condition: Ready}}\n",
            "a.yaml:6: spec.steps[0].wait.object.condition: 'Ready' is not TYPE=STATUS, TYPE=STATUS/REASON "
            "or !TYPE, as PodScheduled=True",
        ),
        (
            "  steps:\n  - wait: {object: {kind: Pod, name: a, jsonPath: {status.phase: Running}}}\n",
            "a.yaml:6: spec.steps[0].wait.object.jsonPath.status.phase: 'status.phase': a JSON path begins "
            "with a dot, as .status.phase",
        ),
        ("  steps: [\n", "a.yaml:6: not valid YAML: did not find expected node content"),
        ("  steps: [kill: scheduler]\n  steps: []\n", "a.yaml:6: spec.steps: the field is given twice"),
    ],
)
def test_a_mistake_names_file_line_and_field(spec: str, message: str) -> None:
    with pytest.raises(InvalidScenarioError) as raised:
        _read(spec)
    assert str(raised.value) == message


def test_all_mistakes_are_reported_in_the_order_of_lines() -> None:
    with pytest.raises(InvalidScenarioError) as raised:
        _read("  steps:\n  - kill: schduler\n  - wait: {object: {kind: Pdo, name: a}}\n")
    assert [problem.line for problem in raised.value.problems] == [6, 7]


def test_a_scenario_is_read() -> None:
    scenario = _read(
        "  steps:\n"
        "  - wait: {object: {kind: Pod, name: a, condition: Ready=True}, seconds: 3}\n"
        "    save: {NODE: .spec.nodeName}\n"
        "  - name: it stays\n"
        "    expect:\n"
        "      always: {all: [{object: {kind: Node, name: '${NODE}'}}, {object: {kind: po, count: 1}}]}\n"
        "      seconds: 2\n"
        "  - restart: {component: kube-scheduler, emulatedVersion: '1.36', kill: true}\n"
    )
    wait, expect, restart = (step.action for step in scenario.steps)
    assert wait == Wait(
        condition=ObjectCondition(kind="Pod", name="a", namespace="default", conditions=("Ready=True",)),
        seconds=3.0,
    )
    assert isinstance(expect, Expect)
    assert expect.mode is Mode.ALWAYS
    assert isinstance(expect.condition, AllOf)
    assert expect.condition.conditions[1] == ObjectCondition(
        kind="po", namespace="default", count=Comparison(equal=1, has_equal=True)
    )
    assert [step.line for step in scenario.steps] == [6, 9, 12]
    assert "component='scheduler'" in repr(restart)


def test_another_program_is_a_process_without_failpoints() -> None:
    cluster = "{components: {descheduler: {command: [descheduler]}, scheduler: {command: [kube-scheduler]}}}"
    scenario = _read(f"  cluster: {cluster}\n  steps:\n  - kill: descheduler\n  - restart: scheduler\n")
    assert scenario.cluster.component("descheduler").command == ("descheduler",)
    with pytest.raises(InvalidScenarioError, match="scheduler is not Nominee's: it has no such port"):
        _read(
            f"  cluster: {cluster}\n"
            "  steps: [failpoint: {component: scheduler, name: scheduler.bind.before, action: crash}]\n"
        )


def test_the_base_of_a_cluster_is_overridden_by_its_fields(tmp_path: Path) -> None:
    (tmp_path / "base.yml").write_text(
        "nodes: 3\ninsecure: true\ncomponents: {autoscaler: {stopped: true}}\n"
    )
    file = tmp_path / "a.yaml"
    cluster = "{base: base.yml, nodes: 1, components: {scheduler: {args: [--v=2]}}}"
    file.write_text(f"{_HEAD}  cluster: {cluster}\n  steps: [kill: scheduler]\n")
    (scenario,) = read_file(file)
    assert (scenario.cluster.nodes, scenario.cluster.insecure) == (1, True)
    assert set(scenario.cluster.components) == {"scheduler", "autoscaler"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_project_s_scenarios_are_valid(file: Path) -> None:
    for scenario in read_file(file):
        assert scenario.title
        assert scenario.section


def test_the_example_of_the_page_is_valid() -> None:
    (scenario,) = read_text(example(), "docs/scenarios.md")
    assert {step.verb for step in scenario.steps} >= {"wait", "apply", "expect", "kill", "nodeGroup"}


def _aliases(levels: int) -> str:
    """Return a text of few lines that has 10^levels values if aliases are followed."""
    lines = [f"a0: &a0 [{', '.join('x' * 10)}]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (_aliases(12), "more than 200000 values"),
        ("a: &a [*a]", "a.yaml:1: more than 100 levels"),
        # Composing this would overflow the C stack.
        ("[" * 300_000, "a.yaml:1: more than 100 levels"),
    ],
)
def test_documents_have_limits(text: str, message: str) -> None:
    with pytest.raises(InvalidScenarioError) as error:
        read_text(text, "a.yaml")
    assert message in str(error.value)
