"""Containers by rule: exits by index and attempt, failing and late probes, images that cannot be pulled."""

from __future__ import annotations

import math

import pytest

from nominee.kubelet import emulation
from nominee.kubelet.emulation import Span
from nominee.kubelet.instructions import RecordContainerEvents, RecordEvent
from nominee.kubelet.pod_sync.probe_step import health
from nominee.machinery.api.pb import core
from tests.kubelet.executor import new_pod
from tests.kubelet.test_sync import Node, conditions, node, since

RULES = """
index=0,2-3 attempt=0 exit-code=42 run-duration=1s
index=4- exit-code=7
attempt=1- exit-code=0
"""


def annotated(*, restart: str = "Always", **values: str) -> core.Pod:
    """Return the pod `a` with these annotations."""
    pod = new_pod("a", restartPolicy=restart)
    for name, value in values.items():
        pod.metadata.annotations[f"nominee.dev/{name.replace('_', '-')}"] = value
    return pod


def notes(here: Node) -> list[str]:
    """Return reasons and texts of the events on containers since the last call."""
    rows = [one for each in here.noted if isinstance(each, RecordContainerEvents) for one in each.events]
    here.noted.clear()
    return [f"{row.type[0]} {row.reason}: {row.note}" for row in rows]


# Rules


@pytest.mark.parametrize(
    ("index", "restarts", "failures", "code"),
    [
        ("0", 0, "", 42),
        ("2", 0, "", 42),
        ("3", 0, "", 42),
        ("1", 0, "", 3),
        ("0", 1, "", 0),
        ("0", 0, "1", 0),
        ("5", 1, "", 7),
        ("", 0, "", 3),
        ("", 2, "", 0),
        ("x", 0, "", 3),
    ],
)
def test_the_first_rule_that_applies_overrides(index: str, restarts: int, failures: str, code: int) -> None:
    pod = annotated(rules=RULES, exit_code="3")
    if index:
        pod.metadata.annotations["batch.kubernetes.io/job-completion-index"] = index
    if failures:
        pod.metadata.annotations["batch.kubernetes.io/job-index-failure-count"] = failures
    assert emulation.exit_code(emulation.of(pod, restarts)) == code


def test_the_index_of_a_stateful_set() -> None:
    pod = annotated(rules="index=1 run-duration=2s")
    pod.metadata.labels["apps.kubernetes.io/pod-index"] = "1"
    assert emulation.run_duration(emulation.of(pod)) == 2.0


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("run_duration", "soon", 'annotation nominee.dev/run-duration: "soon" cannot be read'),
        ("exit_code", "-1", 'annotation nominee.dev/exit-code: "-1" cannot be read'),
        ("cpu_usage", "much", 'annotation nominee.dev/cpu-usage: "much" cannot be read'),
        ("liveness_probe", "3s-x", 'annotation nominee.dev/liveness-probe: "3s-x" cannot be read'),
        ("rules", "\nindex=a exit-code=1", 'annotation nominee.dev/rules: line 2: "index=a" cannot be read'),
        (
            "rules",
            "index=1,4-2 exit-code=1",
            'annotation nominee.dev/rules: line 1: "index=1,4-2" cannot be read',
        ),
        ("startup_probe", "5s-1s", 'annotation nominee.dev/startup-probe: "5s-1s" cannot be read'),
        ("rules", "colour=red", 'annotation nominee.dev/rules: line 1: "colour=red" cannot be read'),
        ("rules", "exit-code=x", 'annotation nominee.dev/rules: line 1: "exit-code=x" cannot be read'),
    ],
)
def test_a_value_that_cannot_be_read_does_not_count_and_is_an_event(
    name: str, value: str, problem: str
) -> None:
    here = node(annotated(**{name: value}))
    recorded = [each for each in here.noted if isinstance(each, RecordEvent)]
    assert [(one.type, one.reason, one.message) for one in recorded] == [
        ("Warning", "InvalidAnnotation", problem)
    ]
    assert conditions(here)["Ready"] == "True"


def test_an_index_of_too_many_digits_does_not_count() -> None:
    pod = annotated(rules="index=1 run-duration=2s\nrun-duration=3s")
    pod.metadata.annotations["batch.kubernetes.io/job-completion-index"] = "1" * 5000
    assert emulation.run_duration(emulation.of(pod)) == 3.0


def test_annotations_of_other_programs_and_good_values_are_no_problem() -> None:
    pod = annotated(rules=RULES, adopted="1.36", image_pull="never", readiness_probe="1s-5s", cpu_usage="1m")
    pod.metadata.annotations["example.org/exit-code"] = "x"
    assert list(emulation.problems(pod)) == []


def test_exits_by_attempt() -> None:
    here = node(annotated(rules="attempt=0 exit-code=1 run-duration=1s", restart="OnFailure"))
    here.pass_time(1.0)
    here.work()
    (row,) = here.api["a"].status.containerStatuses
    assert (row.restartCount, row.lastState.terminated.exitCode) == (1, 1)
    here.pass_time(3600.0)
    here.work()
    assert here.api["a"].status.containerStatuses[0].restartCount == 1


# Probes


def probed(*names: str, **times: int) -> core.Container:
    """Return a container with these probes: each second, two failures in a row."""
    container = core.Container(name="main", image="pause")
    settings = {"initialDelaySeconds": 0, "periodSeconds": 1, "failureThreshold": 2, "successThreshold": 1}
    for name in names:
        probe = getattr(container, f"{name}Probe")
        probe.handler.httpGet.path = "/"
        for key, value in {**settings, **times}.items():
            setattr(probe, key, value)
    return container


NEVER = Span(math.inf)


@pytest.mark.parametrize(
    ("container", "spans", "time", "expected"),
    [
        # starting, ready, killed by, when to look again
        (probed("readiness"), {"readiness": Span(2.5)}, 0.0, (False, False, "", 1.0)),
        (probed("readiness"), {"readiness": Span(2.5)}, 2.9, (False, False, "", 3.0)),
        (probed("readiness"), {"readiness": Span(2.5)}, 3.0, (False, True, "", math.inf)),
        (probed("readiness"), {"readiness": Span(0, 5)}, 4.0, (False, True, "", 5.0)),
        (probed("readiness"), {"readiness": Span(0, 5)}, 5.0, (False, True, "", 6.0)),
        (probed("readiness"), {"readiness": Span(0, 5)}, 6.0, (False, False, "", 7.0)),
        (probed("readiness"), {"readiness": NEVER}, 100.5, (False, False, "", 101.0)),
        (probed("readiness", initialDelaySeconds=9), {"readiness": Span(0)}, 1.0, (False, False, "", 9.0)),
        (probed("readiness", successThreshold=3), {"readiness": Span(1)}, 2.0, (False, False, "", 3.0)),
        (probed("readiness", successThreshold=3), {"readiness": Span(1)}, 3.0, (False, True, "", math.inf)),
        (probed("liveness"), {"liveness": NEVER}, 0.0, (False, True, "", 1.0)),
        (probed("liveness"), {"liveness": NEVER}, 1.0, (False, True, "liveness", 2.0)),
        (probed("liveness"), {"liveness": Span(1)}, 1.0, (False, True, "", math.inf)),
        (probed("liveness"), {"liveness": Span(0, 7)}, 7.0, (False, True, "", 8.0)),
        (probed("liveness"), {"liveness": Span(0, 7)}, 8.0, (False, True, "liveness", 9.0)),
        (probed("liveness"), {"readiness": NEVER}, 99.0, (False, True, "", math.inf)),
        (probed("startup"), {"startup": Span(1)}, 0.0, (True, False, "", 1.0)),
        (probed("startup"), {"startup": Span(1)}, 1.0, (False, True, "", math.inf)),
        (probed("startup"), {"startup": Span(3)}, 1.0, (True, False, "startup", 2.0)),
        (
            probed("startup", "liveness", failureThreshold=9),
            {"startup": Span(5), "liveness": NEVER},
            13.0,
            (False, True, "liveness", 14.0),
        ),
    ],
)
def test_what_probes_say(
    container: core.Container,
    spans: dict[str, Span],
    time: float,
    expected: tuple[bool, bool, str, float],
) -> None:
    found = health(container, spans, 0.0, time)
    assert (found.starting, found.ready, found.killed_by, found.next) == expected


def with_probe(name: str, value: str, **of_pod: str) -> core.Pod:
    """Return the pod `a` whose container has a probe with an annotation."""
    pod = annotated(**{f"{name}_probe": value}, **of_pod)
    del pod.spec.containers[:]
    pod.spec.containers.append(probed(name))
    return pod


def test_a_late_readiness_probe() -> None:
    here = node(with_probe("readiness", "2s"))
    assert conditions(here)["Ready"] == "ContainersNotReady"
    for _ in range(2):
        here.pass_time(1.0)
        here.work()
    assert conditions(here)["Ready"] == "True"
    failures = [note for note in notes(here) if "Unhealthy" in note]
    assert failures == ["W Unhealthy: Readiness probe failed: HTTP probe failed with statuscode: 500"] * 2
    since(here)
    here.pass_time(3600.0)
    here.work()
    assert since(here) == []


def test_a_failing_liveness_probe_restarts_its_container() -> None:
    here = node(with_probe("liveness", "0s-5s"))
    assert conditions(here)["Ready"] == "True"
    for _ in range(6):
        here.pass_time(1.0)
        here.work()
    (row,) = here.api["a"].status.containerStatuses
    assert (row.restartCount, row.lastState.terminated.exitCode, row.ready) == (1, 137, True)
    assert notes(here)[3:6] == [
        "W Unhealthy: Liveness probe failed: HTTP probe failed with statuscode: 500",
        "W Unhealthy: Liveness probe failed: HTTP probe failed with statuscode: 500",
        "N Killing: Container main failed liveness probe, will be restarted",
    ]


def test_a_failing_liveness_probe_ends_a_pod_that_never_restarts() -> None:
    here = node(with_probe("liveness", "never", restart="Never"))
    here.pass_time(1.0)
    here.work()
    assert here.api["a"].status.phase == "Failed"
    assert here.api["a"].status.containerStatuses[0].state.terminated.exitCode == 137
    assert notes(here)[-1] == "N Killing: Container main failed liveness probe"


def test_a_late_startup_probe() -> None:
    here = node(with_probe("startup", "1s"))
    assert not here.api["a"].status.containerStatuses[0].started
    here.pass_time(1.0)
    here.work()
    (row,) = here.api["a"].status.containerStatuses
    assert (row.started, row.ready) == (True, True)


def test_a_kubelet_that_is_restarted_goes_on_with_the_probes() -> None:
    here = node(with_probe("readiness", "10s"))
    here.save()
    here.start_process()
    here.list_pods()
    here.pass_time(10.0)
    here.work()
    assert conditions(here)["Ready"] == "True"


# Images


def test_an_image_that_cannot_be_pulled_for_a_while() -> None:
    here = node(annotated(image_pull="25s"))
    error = 'failed to pull and unpack image "pause": failed to resolve reference "pause": pause: not found'
    (row,) = here.api["a"].status.containerStatuses
    assert (row.state.waiting.reason, row.state.waiting.message) == ("ErrImagePull", error)
    assert notes(here) == [
        'N Pulling: Pulling image "pause"',
        f'W Failed: Failed to pull image "pause": {error}',
        "W Failed: Error: ErrImagePull",
    ]
    here.pass_time(1.0)
    here.work()
    waiting = here.api["a"].status.containerStatuses[0].state.waiting
    assert waiting.reason == "ImagePullBackOff"
    assert waiting.message == f'Back-off pulling image "pause": ErrImagePull: {error}'
    assert notes(here) == ['N BackOff: Back-off pulling image "pause"', "W Failed: Error: ImagePullBackOff"]
    here.pass_time(9.0)
    here.work()
    assert here.api["a"].status.containerStatuses[0].state.waiting.reason == "ErrImagePull"
    here.pass_time(20.0)
    here.work()
    assert here.api["a"].status.phase == "Running"


def test_a_pod_whose_image_is_missing_has_its_address() -> None:
    here = node(annotated(image_pull="25s"))
    address = here.api["a"].status.podIP
    assert address
    assert conditions(here)["PodReadyToStartContainers"] == "True"
    here.pass_time(40.0)
    here.work()
    assert (here.api["a"].status.phase, here.api["a"].status.podIP) == ("Running", address)


def test_a_pod_whose_image_is_missing_can_be_deleted() -> None:
    pod = annotated(image_pull="never")
    here = node(pod)
    assert here.api["a"].status.phase == "Pending"
    gone = here.api["a"]
    gone.metadata.deletionTimestamp.seconds = 1
    here.observe("a")
    here.work()
    assert "DeletePod" in since(here)
