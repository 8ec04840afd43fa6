"""The text of the page: what the measurements say, and what follows for beta. The numbers are computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from nominee.lab.study.pages.report import Report
from nominee.lab.study.results import Condition, TrialResult
from nominee.lab.study.settings import FULL, NO_CRASH, QUICK, VICTIMS_TERMINATING, Scenario
from nominee.lab.study.statistics import Summary, summarize
from nominee.scheduler.framework.api.deferred_resize import Fit, Tracking

_OPTION = {
    Tracking.NONE: "Option 1 (none)",
    Tracking.MEMORY: "Option 2 (memory)",
    Tracking.NOMINATED_NODE_NAME: "Option 3 (nominated-node-name)",
    Tracking.SPEC_NODE_NAME: "Option 4 (spec-node-name)",
}


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and its paragraphs."""

    title: str
    paragraphs: Sequence[str]


def conclusions(report: Report) -> list[Section]:
    """Return the sections for the scenarios that the report has."""
    scenarios = {setup.scenario for setup, _ in report.results.trials}
    sections = []
    if Scenario.CRASH in scenarios:
        sections.append(Section("Double preemption after a restart of the scheduler", _crash(report)))
    if Scenario.GRACE in scenarios:
        sections.append(Section("Grace periods longer than an autoscaler's fallback time", _grace(report)))
    if Scenario.FOUR_PODS in scenarios:
        sections.append(Section("Additional preemption", _four_pods(report)))
    if report.results.rates:
        sections.append(Section("Many deferred pods", _throughput(report)))
    if {Scenario.CRASH, Scenario.GRACE, Scenario.FOUR_PODS} <= scenarios:
        sections.append(Section("What follows for beta", _beta(report)))
    return sections


def _trials(
    report: Report,
    scenario: Scenario,
    tracking: Tracking,
    keep: Callable[[TrialResult], bool] = lambda _: True,
) -> list[TrialResult]:
    return [
        trial
        for setup, trial in report.results.trials
        if (setup.scenario, setup.tracking) == (scenario, tracking) and keep(trial)
    ]


def _crashed(trial: TrialResult) -> bool:
    return trial.point != NO_CRASH


def _before_deletion(trial: TrialResult) -> bool:
    return trial.point.endswith(("cycle.before", "preempt.before", "victim.marked"))


def _after_deletion(trial: TrialResult) -> bool:
    return trial.point.endswith(("victim.after", VICTIMS_TERMINATING))


def _redundant_pods(report: Report, keep: Callable[[TrialResult], bool]) -> str:
    """Return the redundant victims of crashes at some points, over all options."""
    found = [trial for one in Tracking for trial in _trials(report, Scenario.CRASH, one, keep)]
    return f"{sum(trial.redundant for trial in found)} in {len(found)} trials"


def _for_each(of: Callable[[Tracking], str], report: Report) -> str:
    present = {setup.tracking for setup, _ in report.results.trials}
    return "; ".join(f"{_OPTION[one]}: {of(one)}" for one in Tracking if one in present)


def _redundant(trials: Sequence[TrialResult]) -> str:
    pods = sum(trial.redundant for trial in trials)
    return f"{sum(trial.redundant > 0 for trial in trials)} of {len(trials)} trials, {pods} pods"


def _times(trials: Iterable[TrialResult]) -> str:
    found = [trial.resize_seconds for trial in trials if trial.resize_seconds is not None]
    summary = summarize(found)
    return f"{summary.median:.1f} s (p90 {summary.p90:.1f} s)" if summary else "not done"


def _writes(trials: Iterable[TrialResult]) -> str:
    summary = summarize([trial.writes for trial in trials])
    return f"{summary.median:g} ({summary.minimum:g} to {summary.maximum:g})" if summary else "-"


def _crash(report: Report) -> list[str]:
    def crashed(tracking: Tracking) -> list[TrialResult]:
        return _trials(report, Scenario.CRASH, tracking, _crashed)

    def interrupted(tracking: Tracking) -> list[TrialResult]:
        return _trials(report, Scenario.CRASH, tracking, lambda trial: trial.point.endswith("victim.after"))

    def marked(tracking: Tracking) -> str:
        return f"{sum(trial.marked_only for trial in crashed(tracking))} pods"

    def undisturbed(tracking: Tracking) -> str:
        return _writes(_trials(report, Scenario.CRASH, tracking, lambda trial: not _crashed(trial)))

    return [
        "Trials with redundant victims, over all points at which the scheduler was killed: "
        f"{_for_each(lambda one: _redundant(crashed(one)), report)}.",
        "A redundant victim needs two things: a victim that is already terminating when the new scheduler "
        "starts, and a change of the node while the scheduler is down, after which the preemption "
        "chooses other "
        "pods. Crashes before the first deletion (cycle.before, preempt.before, victim.marked) caused "
        f"{_redundant_pods(report, _before_deletion)}, those at victim.after and “{VICTIMS_TERMINATING}” "
        f"{_redundant_pods(report, _after_deletion)}. Option 2 does not help there: a new process has no "
        "memory of its predecessor.",
        f"Time to resize after a crash: {_for_each(lambda one: _times(crashed(one)), report)}. It "
        "consists of "
        "the restart and of the victims' stopping times. Options 3 and 4 do not evict a second "
        "victim while a "
        "first one is terminating: a preemption that was interrupted between two victims goes on "
        "only when the "
        "first is gone, and the stopping times may add up. For crashes at victim.after alone: "
        f"{_for_each(lambda one: _times(interrupted(one)), report)}.",
        "The scheduler marks a victim (DisruptionTarget) before it deletes it. After a crash "
        "between the two, "
        "and a different choice by the next scheduler, pods keep the condition although they stay: "
        f"{_for_each(marked, report)}. No option prevents that. A reader of the condition must not take it "
        "for an eviction; kube-controller-manager removes it after two minutes.",
        f"API writes of the scheduler for one resize without a crash, median (range): "
        f"{_for_each(undisturbed, report)}. Option 3 writes nominatedNodeName and clears it.",
    ]


def _grace(report: Report) -> list[str]:
    def trials(tracking: Tracking) -> list[TrialResult]:
        return _trials(report, Scenario.GRACE, tracking)

    def falls_back(tracking: Tracking) -> str:
        found = trials(tracking)
        return f"{sum(trial.falls_back for trial in found)} of {len(found)}"

    sizes = QUICK if report.quick else FULL
    low, high = sizes.grace_stop_seconds
    return [
        "Trials with redundant victims while victims terminate and other pods of the node are deleted: "
        f"{_for_each(lambda one: _redundant(trials(one)), report)}. The deletion of any pod of the "
        "node moves "
        "the deferred pod to the active queue; with less room to make, the preemption may prefer a "
        "smaller pod "
        "to the larger one that is already terminating. Options 2, 3 and 4 wait for the terminating "
        "victim.",
        f"The victims took {low:g} to {high:g} s to stop, the autoscaler's fallback time was "
        f"{sizes.fallback_seconds:g} s. Resizes that stayed Deferred for longer: "
        f"{_for_each(falls_back, report)}; time to resize: "
        f"{_for_each(lambda one: _times(trials(one)), report)}. "
        "No option changes this: the time to resize is bounded below by the victims' grace periods. "
        "Where an "
        "autoscaler falls back, it evicts the very pod for which the victims were evicted; this "
        "criterion for "
        "beta needs something other than tracking.",
    ]


def _four_pods(report: Report) -> list[str]:
    def mean(fit: Fit) -> str:
        evicted = [
            trial.evicted
            for setup, trial in report.results.trials
            if setup.scenario is Scenario.FOUR_PODS and setup.fit is fit
        ]
        summary = summarize(evicted)
        return f"{summary.mean:.1f} ({summary.minimum:g} to {summary.maximum:g})" if summary else "-"

    return [
        "With the scheduler's count, max(desired, allocated, actual) for every pod, "
        f"{mean(Fit.SCHEDULER)} pods "
        f"were evicted; with the kubelet's count for the other pods, {mean(Fit.KUBELET)}. One has "
        "to go. The "
        "result does not depend on X or on the option for tracking. Two of three evictions in the "
        "KEP's example "
        "are therefore avoidable by the count alone."
    ]


def _throughput(report: Report) -> list[str]:
    def medians(condition: Condition, of: Callable[[Summary, Summary], str]) -> str:
        texts = []
        for one in report.rates():
            if one.condition == condition.value:
                fit = "" if one.setup.fit is Fit.SCHEDULER else " with --resize-fit=kubelet"
                texts.append(f"{one.setup.tracking.value}{fit} {of(one.ratio, one.cpu_ratio)}")
        return ", ".join(texts)

    def shown(ratio: Summary, cpu: Summary) -> str:
        return f"{ratio.median:.2f} (CPU {cpu.median:.2f})"

    sizes = QUICK if report.quick else FULL
    return [
        f"{sizes.deferred_pods} deferred pods that cannot preempt, on {sizes.deferred_nodes} nodes. "
        "Throughput "
        "for new pods as a ratio to none, and the scheduler's processor time for a new pod as a ratio: "
        f"{medians(Condition.QUIET, shown)}. While small pods are deleted on the nodes of the "
        "deferred pods, 20 "
        f"a second: {medians(Condition.CHURN, shown)}.",
        "A node-aware hint that returns Skip is not enough: a queue that asks it for every deferred pod "
        "at every deletion of a pod in the cluster pays for each call, also when no event concerns their "
        "nodes: 4.7 ms of processor time for a deletion, with this many deferred pods. The queue measured"
        " here finds unschedulable pods by node, and such a deletion costs 0.03 ms (docs/design/017). "
        "With deletions on their nodes, backoff limits the retries. The rate without deferred pods is the"
        " mean of a measurement before and one after the others. Other programs on the machine disturb "
        "the throughput more than the processor time; what differs by less than the spread is not a "
        "difference.",
    ]


def _beta(report: Report) -> list[str]:
    def total(tracking: Tracking) -> int:
        return sum(
            trial.redundant
            for scenario in (Scenario.CRASH, Scenario.GRACE)
            for trial in _trials(report, scenario, tracking)
        )

    return [
        f"Redundant victims in both scenarios together: {_for_each(lambda one: f'{total(one)}', report)}. "
        "Option 4 has the safety of Option 3 without its costs: no further writes, and no change in "
        "the meaning "
        "of nominatedNodeName. A reader of nominatedNodeName sees, with Option 3 only, the pod's "
        "own node on a "
        "pod that is bound, from the first preemption until the resize is done. Option 3 also needs "
        "a change of "
        "the API server: since 1.35 it rejects nominatedNodeName on bound pods "
        "(ClearingNominatedNodeNameAfterBinding).",
        "Options 3 and 4 wait for every victim on the node that terminates, also for one that "
        "another pod's "
        "preemption chose; Option 2 knows the victims of each resize. A design that keeps Option 4's "
        "persistence and evicts all chosen victims after a restart, not one after the other, would have to "
        "record the chosen set.",
        "The kubelet's count removes the additional preemption in the KEP's example. The criterion "
        "about grace "
        "periods longer than an autoscaler's fallback time is not met by any of the four options; the "
        "autoscaler would have to see that a preemption is under way, for example in a condition, "
        "and wait.",
    ]


def method(report: Report) -> list[str]:
    """Return how the figures were measured, and what is emulated."""
    sizes = QUICK if report.quick else FULL
    return [
        "Every run has its own etcd, API server, scheduler and kubelet process, with the gate "
        "InPlacePodVerticalScalingSchedulerPreemption on and the KEP's flavour. Pods are bound to "
        "their nodes at "
        "creation. Sizes, priorities and stopping times are drawn from the seed; all seeds run at the same "
        "time, each on its own node of 8 cpu, which is full. “Needed” is the largest number of "
        "victims that one "
        "undisturbed preemption may choose; victims beyond it are redundant.",
        "Crashes: the failpoint is armed with pause; when the preemptions of the trials are held there the "
        "scheduler is killed with SIGKILL. scheduler.cycle.before and the failpoints of status "
        "writes may hold "
        "fewer than all. In about half of the trials another pod of the node is deleted before the "
        "scheduler "
        f"starts again. Victims take {sizes.crash_stop_seconds[0]:g} to "
        f"{sizes.crash_stop_seconds[1]:g} s to stop.",
        "Emulated: the kubelet runs no containers, they only take time to stop; the autoscaler's "
        "fallback time of "
        f"{sizes.fallback_seconds:g} s stands for the five minutes of vertical-pod-autoscaler, and "
        "its eviction is "
        "counted, not carried out. In the scenario of many deferred pods the kubelet sets the "
        "conditions and is "
        "then stopped (SIGSTOP). Writes are counted as a watch sees them: marks, deletions, changes of "
        "nominatedNodeName, and the scheduler's Events.",
    ]
