"""`--replace`: another program in a component's place."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from nominee.commands.scenario.run import scenario as scenario_command
from nominee.lab.scenario.fields.options import ClusterOptions, ComponentOptions
from nominee.lab.scenario.format.model import Scenario
from nominee.lab.scenario.format.reading import read_file
from nominee.lab.scenario.format.replacing import ReplaceError, adapt, parse_programs, words_of
from nominee.lab.scenario.format.up_options import write
from nominee.lab.scenario.steps.expect import Expect, Mode

STAND_IN = Path(__file__).parent / "foreign_scheduler.py"
PROGRAMS = {"scheduler": ("kube-scheduler", "--config={config}")}
HEAD = "apiVersion: scenario.nominee.dev/v1alpha1\nkind: Scenario\nmetadata: {name: one}\n"
CLUSTER = "  cluster: {nodes: 1, without: [autoscaler, cloud]}\n"
POD = """  - apply:
      {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: app}]}}
  - wait: {queue: {queue: binding, pod: p}, seconds: 5, required: false}
  - name: the pod runs
    expect: {now: {object: {kind: Pod, name: p, jsonPath: {.status.phase: Running}}}}
  - name: it has left the queue
    expect: {eventually: {queue: {queue: none, pod: p}}}
"""


def scenario(tmp_path: Path, steps: str, cluster: str = CLUSTER) -> Scenario:
    path = tmp_path / "one.yaml"
    path.write_text(f"{HEAD}spec:\n{cluster}  steps:\n{steps}", encoding="utf-8")
    return read_file(path)[0]


def of(condition: str) -> str:
    return f"  - expect: {{eventually: {condition}}}\n"


OBJECT = "{object: {kind: Pod, name: p, condition: Ready=True}}"
METRIC = "{metric: {component: scheduler, name: x, value: 1}}"
NEVER = f"  - expect: {{never: {{CONDITIONS: [{OBJECT}, {METRIC}]}}, seconds: 1}}\n"
ANSWERED = "pod p is in the unschedulable queue"


@pytest.mark.parametrize(
    ("steps", "left"),
    [
        (of("{queue: {queue: unschedulable, pod: p}}"), "pod p has PodScheduled=False/Unschedulable"),
        (of("{queue: {queue: gated, pod: p}}"), "pod p has PodScheduled=False/SchedulingGated"),
        (of("{queue: {queue: none, pod: p}}"), "pod p has .spec.nodeName is set or pod p exists: no object"),
        (of("{queue: {queue: backoff, pod: p}}"), ""),
        (of("{queue: {queue: unschedulable, count: 1}}"), ""),
        (of(METRIC), ""),
        (of("{debug: {component: scheduler, path: /debug/queue, jsonPath: {.x: 1}}}"), ""),
        (of("{failpoint: {component: scheduler, name: scheduler.bind.before, hits: 1}}"), ""),
        (of(f"{{all: [{OBJECT}, {METRIC}]}}"), "pod p has Ready=True"),
        (of(f"{{any: [{OBJECT}, {METRIC}]}}"), ""),
        (NEVER.replace("CONDITIONS", "any"), "pod p has Ready=True"),
        (NEVER.replace("CONDITIONS", "all"), ""),
        (of("{component: {name: scheduler, state: ready}}"), "scheduler is ready"),
        (of("{metric: {component: kubelet-0, name: x, value: 1}}"), "kubelet-0's x = 1"),
    ],
)
def test_a_condition_is_read_from_the_api_or_left_out(tmp_path: Path, steps: str, left: str) -> None:
    found = adapt(scenario(tmp_path, steps), PROGRAMS)
    assert not found.obstacle
    shown = [
        step.action.condition.describe() for step in found.scenario.steps if isinstance(step.action, Expect)
    ]
    assert shown == ([left] if left else [])
    is_changed = "metric: {component: scheduler" in steps or not left
    assert len(found.scenario.left_out) == int(is_changed)


def test_after_a_wait_that_is_left_out_now_takes_time(tmp_path: Path) -> None:
    found = adapt(scenario(tmp_path, POD), PROGRAMS).scenario
    modes = [step.action.mode for step in found.steps if isinstance(step.action, Expect)]
    assert modes == [Mode.EVENTUALLY, Mode.EVENTUALLY]
    assert found.left_out == ("pod p is in the binding queue",)


@pytest.mark.parametrize(
    ("steps", "components", "obstacle"),
    [
        ("  - failpoint: {component: scheduler, name: scheduler.bind.before, action: pause}\n", "", "line 7"),
        ("  - fault: {component: scheduler, action: cut}\n", "", "line 7 needs Nominee's scheduler"),
        ("  - clock: {component: scheduler, offsetSeconds: 1}\n", "", "line 7 needs Nominee's scheduler"),
        ("  - restart: {component: scheduler, emulatedVersion: '1.36'}\n", "", "line 7 needs"),
        (POD, "scheduler: {replicas: 2}", "2 processes of scheduler"),
        (POD, "scheduler: {args: [--no-leader-elect]}", "its options of scheduler"),
        ("  - kill: scheduler\n  - start: scheduler\n", "", ""),
        ("  - fault: {component: kubelet-0, action: cut}\n", "", ""),
    ],
)
def test_a_scenario_that_needs_the_own_component_is_not_played(
    tmp_path: Path, steps: str, components: str, obstacle: str
) -> None:
    cluster = f"  cluster: {{nodes: 1, without: [autoscaler, cloud], components: {{{components}}}}}\n"
    found = adapt(scenario(tmp_path, steps, cluster), PROGRAMS)
    assert found.obstacle.startswith(obstacle)
    assert bool(found.obstacle) == bool(obstacle)


def test_a_component_that_the_cluster_lacks_is_not_replaced(tmp_path: Path) -> None:
    found = scenario(tmp_path, POD)
    assert adapt(found, {"autoscaler": ("cluster-autoscaler",)}).scenario == found


def test_command_lines_are_parsed_and_written() -> None:
    text = "scheduler=kube-scheduler --config={config} '--v=2 '"
    found = parse_programs([text])
    assert found == {"scheduler": ("kube-scheduler", "--config={config}", "--v=2 ")}
    assert parse_programs(words_of(found)[1::2]) == found


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["kubelet=x"], "'kubelet' cannot be replaced"),
        (["scheduler"], "has no command"),
        (["scheduler="], "has no command"),
        (["scheduler='x"], "No closing quotation"),
        (["scheduler=x", "scheduler=y"], "replaced twice"),
    ],
)
def test_a_wrong_value_is_refused(texts: list[str], message: str) -> None:
    with pytest.raises(ReplaceError, match=message):
        parse_programs(texts)


def test_a_program_has_a_configuration_with_the_kubeconfig_and_the_gates(tmp_path: Path) -> None:
    own = ComponentOptions(
        command=("kube-scheduler", "--config={config}", "--feature-gates={gates}"),
        config={"kind": "KubeSchedulerConfiguration", "parallelism": 3},
    )
    folder = tmp_path / "scenario"
    gates = {"GenericWorkload": True}
    write(ClusterOptions(components={"scheduler": own}, feature_gates=gates), folder)
    written = (folder / "up.yaml").read_text(encoding="utf-8")
    assert f"--config={folder}/scheduler-config.yaml" in written
    assert "--feature-gates=GenericWorkload=true" in written
    config = (folder / "scheduler-config.yaml").read_text(encoding="utf-8")
    assert "parallelism: 3" in config
    assert f"kubeconfig: {tmp_path}/kubeconfig" in config
    write(ClusterOptions(components={"scheduler": own}), folder)
    assert "--feature-gates" not in (folder / "up.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--replace", "scheduler=no-such-program"], "the program no-such-program is not installed"),
        (["--replace", "scheduler=sh", "--simulate"], "cannot be simulated"),
        (["--replace", "etcd=sh"], "'etcd' cannot be replaced"),
    ],
)
def test_a_run_that_is_not_possible_is_refused(tmp_path: Path, arguments: list[str], message: str) -> None:
    scenario(tmp_path, POD)
    ran = CliRunner().invoke(scenario_command, ["run", str(tmp_path / "one.yaml"), *arguments])
    assert ran.exit_code == 2
    assert message in ran.output


def run(tmp_path: Path, command: list[str]) -> tuple[int, dict[str, object]]:
    """Run the scenario with a program in the scheduler's place; return the exit status and the result."""
    scenario(tmp_path, POD)
    arguments = ["run", str(tmp_path / "one.yaml"), "--dir", str(tmp_path / "run"), "-o", "json"]
    ran = CliRunner().invoke(scenario_command, [*arguments, "--replace", f"scheduler={shlex.join(command)}"])
    assert ran.stdout, ran.output
    (result,) = json.loads(ran.stdout)["results"]
    return ran.exit_code, result


@pytest.mark.slow
@pytest.mark.processes
def test_a_foreign_scheduler_plays_a_scenario(tmp_path: Path) -> None:
    code, result = run(tmp_path, [sys.executable, "-P", str(STAND_IN), "--config={config}"])
    assert code == 0, result
    assert result["checks"] == 2
    assert result["leftOut"] == ["pod p is in the binding queue"]


@pytest.mark.slow
@pytest.mark.processes
def test_a_program_that_ends_at_once_is_named_with_its_last_lines(tmp_path: Path) -> None:
    code, result = run(tmp_path, [sys.executable, "-c", "raise SystemExit('no such option')"])
    assert code == 2
    assert result["outcome"] == "error"
    assert "scheduler does not stay up" in str(result["reason"])
    assert "no such option" in str(result["reason"])
