"""Measures and variants: what is collected, on which clusters, and mistakes in the file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from nominee.lab.jobs.local import LocalExecutor
from nominee.lab.scenario.format.documents import InvalidScenarioError
from nominee.lab.scenario.format.model import Scenario
from nominee.lab.scenario.format.reading import read_file, read_text
from nominee.lab.scenario.play.report import measured_texts
from nominee.lab.scenario.play.simulate import simulate
from nominee.lab.scenario.play.simulation_running import SimulationSettings, run_seeds
from nominee.lab.scenario.result import Measurements, Outcome, ScenarioResult
from nominee.machinery.wire.values.scalars import Json

_HEAD = """\
apiVersion: scenario.nominee.dev/v1alpha1
kind: Scenario
metadata: {name: small}
spec:
  timeoutSeconds: 60
  cluster: {nodes: 1, without: [autoscaler, cloud]}
"""
_VARIANTS = """\
  variants: [{NAME: a, DELAY: 2s, LEAST: 1}, {NAME: b, DELAY: 4s, LEAST: 1}]
  steps:
  - name: ${NAME} is created
    apply:
      apiVersion: v1
      kind: Pod
      metadata: {name: "${NAME}", annotations: {nominee.dev/start-delay: "${DELAY}"}}
      spec: {containers: [{name: c, image: i}]}
  - wait:
      object: {kind: Pod, name: "${NAME}", jsonPath: {.status.phase: Running}, count: {atLeast: "${LEAST}"}}
"""
_RUNS = '{object: {kind: Pod, name: "${NAME}", jsonPath: {.status.phase: Running}}}'
_POD = (
    "  - apply: {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, image: i}]}}\n"
)


def _read(spec: str) -> Scenario:
    (scenario,) = read_text(_HEAD + spec, "a.yaml")
    return scenario


def _measured(spec: str) -> tuple[ScenarioResult, Mapping[str, Mapping[str, Json]]]:
    """Return the result in a simulation, and the values by the NAME of the variant."""
    result = simulate(_read(spec), 1)
    assert result.outcome is Outcome.PASSED, result.reason
    return result, {row.variant.get("NAME", ""): row.values for row in result.measurements}


def test_values_of_each_variant_and_of_the_whole_run() -> None:
    measures = f"""\
  measure:
    running: {{count: {{kind: Pod, jsonPath: {{.status.phase: Running}}}}}}
    nodes: {{count: {{kind: Node}}}}
    starts: {{seconds: {{from: {{step: "${{NAME}} is created"}}, until: {_RUNS}}}}}
    pending: {{held: {{object: {{kind: Pod, name: "${{NAME}}", jsonPath: {{.status.phase: Pending}}}}}}}}
    phases: {{values: {{kind: Pod, name: "${{NAME}}", jsonPath: .status.phase}}}}
    messages: {{values: {{kind: Pod, name: "${{NAME}}", jsonPath: .status.message}}}}
    absent: {{values: {{kind: Pod, name: "${{NAME}}x", jsonPath: .status.phase}}}}
    never: {{seconds: {{from: {_RUNS}, until: {{object: {{kind: Pod, name: "${{NAME}}x"}}}}}}}}
"""
    result, by_name = _measured(_VARIANTS + measures)
    assert by_name[""] == {"running": 2, "nodes": 1}
    for name, seconds in (("a", 2.0), ("b", 4.0)):
        values = dict(by_name[name])
        assert values.pop("starts") == pytest.approx(seconds, abs=0.2)
        assert values.pop("pending") == pytest.approx(seconds, abs=0.2)
        phases = ["Pending", "Running"]
        assert values == {"phases": phases, "messages": [""], "absent": [], "never": None}
    assert (
        ScenarioResult.from_json(json.loads(json.dumps(result.as_json()))).measurements == result.measurements
    )


def test_counted_are_objects_that_are_gone_and_held_is_the_sum_of_several_times() -> None:
    _, values = _measured(
        "  steps:\n"
        + _POD
        + "  - wait: {object: {kind: Pod, name: a, jsonPath: {.status.phase: Running}}}\n"
        + "  - delete: {kind: Pod, name: a, gracePeriodSeconds: 0}\n"
        + "  - wait: {object: {kind: Pod, name: absent}, seconds: 3, required: false}\n"
        + _POD
        + "  - wait: {object: {kind: Pod, name: a, jsonPath: {.status.phase: Running}}}\n"
        + "  - wait: {object: {kind: Pod, name: absent}, seconds: 2, required: false}\n"
        + "  measure:\n"
        + "    pods: {count: {kind: Pod, name: a, jsonPath: {.status.phase: Running}}}\n"
        + "    absent: {held: {object: {kind: Pod, name: a, exists: false}}}\n"
        + "    again: {seconds: {from: {object: {kind: Pod, name: a, exists: false}}, "
        + "until: {object: {kind: Pod, name: a}}}}\n"
    )
    assert values[""]["pods"] == 2
    assert values[""]["absent"] == pytest.approx(3.0, abs=0.2)
    assert values[""]["again"] == pytest.approx(3.0, abs=0.2)


def test_a_moment_may_hold_when_the_one_before_it_comes() -> None:
    _, values = _measured(
        "  steps:\n"
        + _POD
        + "  - wait: {object: {kind: Pod, name: a, jsonPath: {.status.phase: Running}}}\n"
        + "  - {name: later, wait: {object: {kind: Pod, name: absent}, seconds: 2, required: false}}\n"
        + "  measure:\n"
        + "    none: {seconds: {from: {step: later}, until: {object: {kind: Pod, name: a}}}}\n"
        + "    backwards: {seconds: {from: {step: later}, until: {object: {kind: Pod, name: a, "
        + "jsonPath: {.status.phase: Pending}}}}}\n"
    )
    assert values[""] == {"none": 0.0, "backwards": None}


def test_values_are_measured_up_to_a_step_that_fails() -> None:
    scenario = _read(
        "  steps:\n"
        + _POD
        + "  - expect: {eventually: {object: {kind: Pod, name: absent}}, seconds: 5}\n"
        + "  measure: {pods: {count: {kind: Pod, name: a}}}\n"
    )
    result = simulate(scenario, 1)
    assert result.outcome is Outcome.FAILED
    assert [row.values for row in result.measurements] == [{"pods": 1}]


@pytest.mark.processes
def test_values_of_several_seeds() -> None:
    scenario = _read(f"{_VARIANTS}  measure: {{starts: {{held: {_RUNS}}}}}\n")
    settings = SimulationSettings(seeds=range(3, 6))
    (found,) = run_seeds([scenario], settings, LocalExecutor(2), lambda count, failed: None)
    rows = found.result.measurements
    assert [(row.variant["seed"], row.variant["NAME"]) for row in rows] == [
        (seed, name) for seed in (3, 4, 5) for name in ("a", "b")
    ]
    (text,) = measured_texts(found.result)
    assert text.startswith("starts: median ")
    assert text.endswith(" of 6 values")


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([2], "2"),
        ([None], "null"),
        ([["a", ""]], '["a", ""]'),
        ([1, 4, 2], "median 2 (1 to 4) of 3 values"),
        ([1, None], "median 1 (1 to 1) of 1 values, 1 without one"),
        ([["a"], ["b"], ["a"]], '["a"] (2 times), ["b"] (1 times)'),
    ],
)
def test_the_text_of_a_measure(values: list[Json], text: str) -> None:
    rows = tuple(Measurements(variant={}, values={"x": value}) for value in values)
    result = ScenarioResult(scenario="s", outcome=Outcome.PASSED, measurements=rows)
    assert measured_texts(result) == [f"x: {text}"]


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        ("{}", "spec.measure.m: must not be empty"),
        (
            "{count: {kind: Pod}, held: {object: {kind: Pod}}}",
            "spec.measure.m: a measure has exactly one of count, held, seconds, values",
        ),
        ("{cont: {kind: Pod}}", "spec.measure.m.cont: unknown field; did you mean count?"),
        (
            "{count: {kind: Pdo}}",
            "spec.measure.m.count.kind: unknown kind 'Pdo'; did you mean Pod?",
        ),
        (
            "{count: {kind: Pod, exists: false}}",
            "spec.measure.m.count.exists: objects with the other properties are counted; leave it out",
        ),
        (
            "{held: {component: {name: scheduler, state: ready}}}",
            "spec.measure.m.held: only conditions on objects and events are measured; processes are polled",
        ),
        (
            "{seconds: {from: {step: x}}}",
            "spec.measure.m.seconds: the field until is missing",
        ),
        (
            "{seconds: {from: {step: x}, until: {object: {kind: Pod}}}}",
            "spec.measure.m.seconds: no step has the name 'x'",
        ),
        (
            "{values: {kind: Pod, name: a, jsonPath: status}}",
            "spec.measure.m.values.jsonPath: 'status': a JSON path begins with a dot, as .status.phase",
        ),
        (
            '{count: {kind: Pod, name: "${NAME}"}}',
            "spec.measure.m.count: ${NAME} is no variable of spec.variants",
        ),
    ],
)
def test_a_mistake_in_a_measure_names_its_field(measure: str, message: str) -> None:
    with pytest.raises(InvalidScenarioError) as raised:
        _read(f"  steps: [kill: scheduler]\n  measure:\n    m: {measure}\n")
    assert f"a.yaml:9: {message}" in str(raised.value).splitlines()


@pytest.mark.parametrize(
    ("variants", "message"),
    [
        ("[]", "a.yaml:7: spec.variants: must not be empty"),
        ("{A: b}", "a.yaml:7: spec.variants: expected array, got object"),
        ("[3]", "a.yaml:7: spec.variants[0]: expected object, got number"),
        ("[{A: [b]}]", "a.yaml:7: spec.variants[0].A: expected string or number, got array"),
        ('[{"a b": b}]', "a.yaml:7: spec.variants[0]: 'a b' does not match ^[A-Za-z][A-Za-z0-9_]*$"),
    ],
)
def test_a_mistake_in_the_variants(variants: str, message: str) -> None:
    with pytest.raises(InvalidScenarioError) as raised:
        _read(f"  variants: {variants}\n  steps: [kill: scheduler]\n")
    assert str(raised.value) == message


def test_steps_with_variables_stand_once_for_each_different_variant() -> None:
    scenario = _read(
        "  variants: [{A: x, B: kubelet}, {A: y, B: kubelet}]\n"
        "  steps:\n"
        "  - kill: ${B}\n"
        '  - {name: "the ${A}", delete: {kind: Pod, name: "${A}$${A}"}}\n'
        "  - start: scheduler\n"
    )
    assert [(step.verb, step.name, step.line) for step in scenario.steps] == [
        ("kill", "", 9),
        ("delete", "the x", 10),
        ("delete", "the y", 10),
        ("start", "", 11),
    ]
    assert [step.action.describe() for step in scenario.steps[1:3]] == [
        "delete pod/x$${A}",
        "delete pod/y$${A}",
    ]


def test_a_mistake_after_a_repeated_step_has_the_line_of_the_file() -> None:
    with pytest.raises(InvalidScenarioError) as raised:
        _read(
            "  variants: [{A: x}, {A: y}]\n"
            "  steps:\n"
            '  - delete: {kind: Pod, name: "${A}"}\n'
            '  - delete: {kind: Pod, name: "${C}"}\n'
            "  - kill: schduler\n"
        )
    lines = str(raised.value).splitlines()
    assert lines[0].startswith("a.yaml:10: spec.steps[2].delete: ${C} is not saved by an earlier step")
    assert lines[1].startswith("a.yaml:11: spec.steps[3].kill: unknown component 'schduler'")


def test_measures_of_a_base_file(tmp_path: Path) -> None:
    (tmp_path / "base.yml").write_text("pods: {count: {kind: Pod}}\nnodes: {count: {kind: Node}}\n")
    spec = "  steps: [kill: scheduler]\n  measure: {base: base.yml, pods: {count: {kind: Pod, name: a}}}\n"
    (tmp_path / "a.yaml").write_text(_HEAD + spec)
    (scenario,) = read_file(tmp_path / "a.yaml")
    assert [each.name for each in scenario.measures] == ["pods", "nodes"]
    (tmp_path / "base.yml").write_text("pods: {counts: {kind: Pod}}\n")
    with pytest.raises(InvalidScenarioError, match=r"base\.yml:1: pods\.counts: unknown field"):
        read_file(tmp_path / "a.yaml")


def test_a_wait_that_is_not_required_says_what_it_observed() -> None:
    scenario = _read(
        "  steps:\n  - wait: {object: {kind: Pod, name: absent}, seconds: 2, required: false}\n"
        "  - expect: {now: {object: {kind: Node, name: node-0}}}\n"
    )
    result = simulate(scenario, 1)
    assert result.outcome is Outcome.PASSED, result.reason
    assert result.steps[0].name == "until pod absent exists, or for 2 s"
    assert result.steps[0].observation == "not within 2 s; observed: there is no such object"


def test_a_failure_about_an_object_that_is_gone_says_when_it_was_deleted() -> None:
    pod = "{apiVersion: v1, kind: Pod, metadata: {name: short}, spec: {containers: [{name: c, image: app}]}}"
    scenario = _read(
        f"  steps:\n  - apply: [{pod}]\n  - wait: {{object: {{kind: Pod, name: short}}}}\n"
        "  - delete: {kind: Pod, name: short, gracePeriodSeconds: 0}\n"
        "  - wait: {object: {kind: Pod, name: short, count: 0}}\n"
        "  - expect: {now: {object: {kind: Pod, name: short, condition: Ready=True}}}\n"
    )
    result = simulate(scenario, 1)
    assert result.outcome is Outcome.FAILED
    assert re.search(r"it existed until \d+\.\d s$", result.reason), result.reason
    assert result.objects == ("Pod default/short",)


def test_copies_of_a_step_are_performed_at_the_same_time() -> None:
    variants = "  variants: [{SECONDS: 2}, {SECONDS: 5}, {SECONDS: 3}]\n"
    wait = "{object: {kind: Pod, name: absent}, seconds: '${SECONDS}'"
    result = simulate(_read(f"{variants}  steps: [wait: {wait}, required: false}}, kill: scheduler]\n"), 1)
    assert result.outcome is Outcome.PASSED, result.reason
    assert [(step.number, round(step.started_seconds), round(step.seconds)) for step in result.steps] == [
        (1, 0, 2),
        (2, 0, 5),
        (3, 0, 3),
        (4, 5, 0),
    ]
    result = simulate(_read(f"{variants}  steps: [wait: {wait}}}, kill: scheduler]\n"), 1)
    assert result.outcome is Outcome.FAILED
    assert result.reason.startswith("step 1 (wait, a.yaml:8): until pod absent exists: not within 2 s")
    assert [step.outcome for step in result.steps] == [Outcome.FAILED] * 3


def test_steps_on_one_line_are_no_copies() -> None:
    result = simulate(_read("  steps: [kill: scheduler, start: scheduler, kill: scheduler]\n"), 1)
    assert result.outcome is Outcome.PASSED, result.reason
