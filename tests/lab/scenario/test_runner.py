"""The runner's semantics, in a simulation: modes, variables, expectations over the run, invariants."""

from __future__ import annotations

import pytest

from nominee.lab.scenario.fields.options import ClusterOverrides
from nominee.lab.scenario.format.reading import read_text
from nominee.lab.scenario.play.simulate import simulate
from nominee.lab.scenario.result import Outcome, ScenarioResult
from nominee.lab.scenario.steps.faults.failpoint import ArmFailpoint
from tests.lab.scenario.test_reading import example

_HEAD = """\
apiVersion: scenario.nominee.dev/v1alpha1
kind: Scenario
metadata: {name: small}
spec:
  timeoutSeconds: 60
  cluster: {nodes: 1, without: [autoscaler, cloud]}
"""
_POD = (
    "apply: {apiVersion: v1, kind: Pod, metadata: {name: a, annotations: {nominee.dev/start-delay: 2s}}, "
    "spec: {containers: [{name: c, image: i}]}}"
)
_RUNS = "{object: {kind: Pod, name: a, jsonPath: {.status.phase: Running}}}"
_PENDING = "{object: {kind: Pod, name: a, jsonPath: {.status.phase: Pending}}}"


def _play(steps: list[str], background: str = "", options: str = "") -> ScenarioResult:
    text = _HEAD + options + "  steps:\n" + "".join(f"  - {step}\n" for step in steps)
    if background:
        text += f"  expect: [{background}]\n"
    (scenario,) = read_text(text, "small.yaml")
    return simulate(scenario, 1)


@pytest.mark.parametrize(
    ("steps", "outcome", "reason"),
    [
        ([_POD, f"expect: {{eventually: {_RUNS}}}"], Outcome.PASSED, ""),
        (
            # A state that lasts a moment counts.
            [_POD, f"wait: {_RUNS[:-1]}}}", "delete: {kind: Pod, name: a, gracePeriodSeconds: 0}"],
            Outcome.PASSED,
            "",
        ),
        (
            [_POD, f"expect: {{now: {_RUNS}}}"],
            Outcome.FAILED,
            "step 2 (expect, small.yaml:9): pod a has .status.phase = Running: observed: pod default/a: "
            ".status.phase = Pending",
        ),
        (
            [_POD, "expect: {eventually: {object: {kind: Pod, name: b}}, seconds: 5}"],
            Outcome.FAILED,
            "step 2 (expect, small.yaml:9): eventually pod b exists: not within 5 s; observed: there is no "
            "such object",
        ),
        ([_POD, f"expect: {{never: {_RUNS}, seconds: 9}}"], Outcome.FAILED, "step 2 (expect, small.yaml:9)"),
        ([_POD, f"expect: {{always: {_PENDING}, seconds: 9}}"], Outcome.FAILED, "observed: pod default/a"),
        (
            [_POD, "expect: {never: {object: {kind: Pod, name: b}}, seconds: 90}"],
            Outcome.FAILED,
            "the scenario's 60 s are over",
        ),
        (
            ["patch: {kind: Pod, name: b, patch: {metadata: {labels: {a: b}}}}"],
            Outcome.ERROR,
            'pods "b" not found',
        ),
        (
            [_POD.replace("name: a,", "name: A,"), "kill: scheduler"],
            Outcome.ERROR,
            "step 1 (apply, small.yaml:8): apply pod/A",
        ),
    ],
)
def test_an_outcome_names_step_and_observation(steps: list[str], outcome: Outcome, reason: str) -> None:
    result = _play(steps)
    assert result.outcome is outcome, result.reason
    assert reason in result.reason


def test_a_step_that_may_fail_is_passed_over_and_a_check_is_not() -> None:
    absent = [
        "patch: {kind: Pod, name: absent, patch: {metadata: {labels: {a: b}}}}",
        "wait: {object: {kind: Pod, name: absent}, seconds: 1}",
    ]
    result = _play([*absent, _POD, f"expect: {{now: {_RUNS}}}"], options="  stepsMayFail: true\n")
    assert [step.outcome for step in result.steps] == [Outcome.PASSED] * 3 + [Outcome.FAILED]
    assert result.steps[0].observation == 'passed over: pods "absent" not found'
    assert result.steps[1].observation.startswith("passed over: not within 1 s")
    assert _play(absent).outcome is Outcome.ERROR


def test_a_rejection_can_be_expected() -> None:
    invalid = f"{_POD.replace('name: a,', 'name: A,')}\n    rejected: a lowercase RFC 1123 subdomain"
    assert _play([invalid]).outcome is Outcome.PASSED
    result = _play([f"{_POD}\n    rejected: not allowed"])
    assert result.outcome is Outcome.FAILED
    assert "the API server accepted it; expected an error with 'not allowed'" in result.reason


def test_an_expectation_over_the_run_ends_it_at_the_change() -> None:
    background = f"{{name: it does not run, never: {_RUNS}}}"
    result = _play([_POD, "expect: {always: {object: {kind: Pod, name: a}}, seconds: 30}"], background)
    assert result.outcome is Outcome.FAILED
    assert (
        "during the run: it does not run: observed: pod default/a: .status.phase = Running" in result.reason
    )
    assert [violation.invariant for violation in result.violations] == ["it does not run"]
    assert result.seconds < 30


def test_saved_values_are_used_in_names_and_conditions() -> None:
    result = _play(
        [
            _POD,
            f"wait: {_RUNS}\n    save: {{NODE: .spec.nodeName}}",
            "name: the node is ${NODE}\n    expect: {now: {object: {kind: Node, name: '${NODE}'}}}",
        ]
    )
    assert result.outcome is Outcome.PASSED, result.reason
    assert result.steps[-1].name == "the node is node-0"
    assert result.checks == 1


def test_a_value_that_is_unset_cannot_be_saved() -> None:
    result = _play([_POD, f"wait: {_RUNS}\n    save: {{NODE: .status.nominatedNodeName}}"])
    assert result.outcome is Outcome.FAILED
    assert "cannot save NODE: .status.nominatedNodeName is unset" in result.reason


def test_conditions_on_processes() -> None:
    result = _play(
        [
            "failpoint: {component: scheduler, name: scheduler.bind.before, action: pause}",
            _POD,
            "wait: {failpoint: {component: scheduler, name: scheduler.bind.before, waiting: 1}}",
            "expect: {now: {queue: {queue: binding, pod: a}}}",
            "expect: {now: {component: {name: scheduler, state: ready, restarts: 0}}}",
            "expect: {eventually: {metric: {component: scheduler, name: scheduler_pending_pods, value: 0}}}",
            "failpoint: {component: scheduler, name: scheduler.bind.before, action: 'off'}",
            f"expect: {{eventually: {{any: [{_RUNS}, {{queue: {{queue: gated, pod: a}}}}]}}}}",
            "expect: {eventually: {event: {reason: Scheduled, kind: Pod, name: a, count: 1}}}",
            "expect: {now: {queue: {queue: none, pod: a}}}",
        ]
    )
    assert result.outcome is Outcome.PASSED, result.reason
    assert result.checks == 6


def test_a_drain_evicts_the_pods() -> None:
    result = _play(
        [
            _POD,
            f"wait: {_RUNS}",
            "drain: {node: node-0}",
            "expect: {now: {object: {kind: Pod, exists: false}}}",
        ]
    )
    assert result.outcome is Outcome.PASSED, result.reason


def test_a_drain_keeps_its_time_where_an_eviction_is_refused_with_retry_after() -> None:
    labelled = _POD.replace("name: a,", "name: a, labels: {app: a},", 1)
    budget = (
        "apply: [{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a}, "
        "spec: {minAvailable: 0, selector: {matchLabels: {app: a}}}}]"
    )
    steps = [labelled, f"wait: {_RUNS}", "kill: controllers", budget, "drain: {node: node-0, seconds: 3}"]
    result = _play(steps)
    assert result.outcome is Outcome.FAILED
    assert "not drained within 3 s: a" in result.reason
    assert 3 <= result.steps[-1].seconds < 4


def test_first_actions_and_overrides() -> None:
    (scenario,) = read_text(f"{_HEAD}  steps: [{_POD}, expect: {{eventually: {_RUNS}}}]\n", "small.yaml")
    result = simulate(
        scenario,
        1,
        overrides=ClusterOverrides(emulated_versions={"scheduler": "1.36"}),
        first=[ArmFailpoint(component="scheduler", name="scheduler.bind.before", action="sleep(5000)")],
    )
    assert result.outcome is Outcome.PASSED, result.reason
    assert result.seconds > 5
    assert ScenarioResult.from_json(result.as_json()).as_json() == result.as_json()


def test_an_invariant_that_is_broken_fails_the_scenario_unless_it_is_excepted() -> None:
    steps = [
        _POD,
        f"wait: {_RUNS}",
        "patch: {kind: Pod, name: a, subresource: status, patch: {status: {conditions: [{type: "
        "DisruptionTarget, status: 'True', reason: PreemptionByScheduler}]}}}",
        "delete: {kind: Pod, name: a}",
    ]
    result = _play(steps)
    assert result.outcome is Outcome.FAILED
    assert [violation.invariant for violation in result.violations] == ["victims-have-lower-priority"]
    invariants = "  invariants: {except: [{name: victims-have-lower-priority, reason: no preemptor}]}\n"
    text = _HEAD + invariants + "  steps:\n" + "".join(f"  - {step}\n" for step in steps)
    (scenario,) = read_text(text, "small.yaml")
    assert simulate(scenario, 1).outcome is Outcome.PASSED


def test_the_example_of_the_page_holds() -> None:
    (scenario,) = read_text(example(), "docs/scenarios.md")
    result = simulate(scenario, 1)
    assert result.outcome is Outcome.PASSED, result.reason
    assert result.checks == 2


TWO_SCHEDULERS = """\
apiVersion: scenario.nominee.dev/v1alpha1
kind: Scenario
metadata: {name: two-schedulers}
spec:
  cluster:
    nodes: 1
    insecure: true
    without: [autoscaler, cloud, controllers]
    components: {scheduler: {replicas: 2}, scheduler-0: {stopped: true}}
  steps:
  - apply:
      apiVersion: v1
      kind: Pod
      metadata: {name: a}
      spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1k}}}]}
  - expect: {eventually: {queue: {queue: unschedulable, pod: a}}}
  - start: scheduler-0
  - name: the standby, which is the first process, is not asked
    expect: {now: {all: [{queue: {queue: unschedulable, pod: a}}, {queue: {queue: unschedulable, count: 1}}]}}
  - expect:
      now:
        metric: {component: scheduler, name: scheduler_pending_pods, labels: {queue: unschedulable}, value: 1}
  - name: it is asked if it is named
    expect: {now: {queue: {queue: active, pod: a, component: scheduler-0}}}
"""


def test_a_queue_is_that_of_the_leader() -> None:
    (scenario,) = read_text(TWO_SCHEDULERS, "two.yaml")
    result = simulate(scenario, 1)
    assert result.outcome is Outcome.PASSED, result.reason
