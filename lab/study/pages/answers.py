"""The answers of the study: each with its evidence, computed from the rows.

A difference is named only if its 95% confidence interval excludes none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nominee.lab.study.pages.data import (
    OPTIONS,
    Data,
    Keep,
    before_deletion,
    between_deletions,
    is_early,
    is_race_c,
    is_redundant,
    is_stuck,
    paired,
    ratios,
    share_of,
    while_terminating,
)
from nominee.lab.study.pages.tables import number, percent
from nominee.lab.study.settings import (
    AFTER_POLICY,
    AT_ONCE,
    CHURN,
    FALLBACK_SECONDS,
    GRACE_STOP_SECONDS,
    LATER,
    LIVE_READ,
    NEW_KUBELET,
    OLD_KUBELET,
    QUIET,
    SHIPPED,
    Scenario,
)
from nominee.lab.study.statistics import median, share
from nominee.scheduler.framework.resize_preemption import Fit, Tracking


@dataclass(frozen=True, slots=True)
class Answer:
    """A question of a section of the KEP, its answer, and the evidence."""

    question: str
    section: str
    answer: str
    evidence: str
    scenario: Scenario


def answers(data: Data) -> list[Answer]:
    """Return the answers for the scenarios that were measured with each setup that an answer needs."""
    return [found for of in _ANSWERS if (found := of(data)) is not None]


def _shares(
    data: Data, scenario: Scenario, test: Keep, keep: Keep = lambda _: True, variant: str = ""
) -> str:
    """Return the share of each option, with interval and number of trials."""
    found = ((one, data.rows(scenario, one, variant, keep)) for one in Tracking)
    return "; ".join(
        f"{OPTIONS[one]} {percent(share_of(rows, test))} of {len(rows)}" for one, rows in found if rows
    )


def _listed(options: Sequence[Tracking]) -> str:
    numbers = [OPTIONS[one].removeprefix("Option ") for one in options]
    if not numbers:
        return ""
    names = ", ".join(numbers[:-1]) + (" and " if numbers[1:] else "") + numbers[-1]
    return f"Option{'s' if numbers[1:] else ''} {names}"


def _seen(subject: str, data: Data, scenario: Scenario, test: Keep) -> str:
    """Return the sentence about the options for which something was seen, and those without.

    The latter are said to differ from Option 1 only if chance would not do that to the same seeds.
    """
    base = {row["seed"]: test(row) for row in data.rows(scenario)}
    seen: list[Tracking] = []
    never: list[Tracking] = []
    unsure: list[Tracking] = []
    for one in Tracking:
        rows = data.rows(scenario, one)
        if any(map(test, rows)):
            seen.append(one)
        elif rows:
            fewer = sum(base.get(row["seed"], False) for row in rows)
            (never if 0.5**fewer <= 0.025 else unsure).append(one)
    parts = [f"seen with {_listed(seen) or 'no option'}"]
    if never:
        parts.append(f"never with {_listed(never)}")
    if unsure and seen:
        parts.append(f"not with {_listed(unsure)}, in too few trials to tell")
    return f"{subject}: {', '.join(parts)}."


def _crash(data: Data) -> Answer | None:
    rows = data.rows(Scenario.CRASH)
    if not rows:
        return None
    groups = {
        "before the first deletion": before_deletion,
        "after it": between_deletions,
        "while victims terminate": while_terminating,
    }
    moments = "; ".join(
        f"{name} {percent(share_of(of, is_redundant))} of {len(of)}"
        for name, keep in groups.items()
        if (of := [row for row in rows if keep(row)])
    )
    return Answer(
        "Does a restart of the scheduler cause double preemption?",
        "Shifting Preemption Victims during Scheduler Restart",
        _seen("Redundant victims", data, Scenario.CRASH, is_redundant)
        + " They need a victim that terminates already when the next scheduler starts, and another choice "
        "then: memory does not survive the crash, the pod's spec.nodeName does.",
        f"Trials with redundant victims, all crashes: {_shares(data, Scenario.CRASH, is_redundant)}. "
        f"Option 1 by the moment of the crash: {moments}.",
        Scenario.CRASH,
    )


def _grace(data: Data) -> Answer | None:
    if not data.rows(Scenario.GRACE):
        return None
    return Answer(
        "Does a long grace period cause double preemption, without a crash?",
        "Tracking Preemption Nominations to Avoid Double Preemption",
        _seen("Redundant victims", data, Scenario.GRACE, is_redundant)
        + " The deletion of any other pod of the node brings the resize back into the active queue, and "
        "with less room to make the preemption may choose a smaller pod than the one that terminates.",
        f"Trials with redundant victims: {_shares(data, Scenario.GRACE, is_redundant)}.",
        Scenario.GRACE,
    )


def _marked(data: Data) -> Answer | None:
    if not data.rows(Scenario.CRASH):
        return None
    return Answer(
        "Is DisruptionTarget a sign of an eviction?",
        "Shifting Preemption Victims during Scheduler Restart",
        _seen(
            "Pods that keep the mark but are not evicted",
            data,
            Scenario.CRASH,
            lambda row: row["markedOnly"] > 0,
        )
        + " The scheduler marks before it deletes, and the next one may choose other pods; no option records "
        "the choice. kube-controller-manager removes the mark after two minutes.",
        "Trials with such pods, all crashes: "
        f"{_shares(data, Scenario.CRASH, lambda row: row['markedOnly'] > 0)}.",
        Scenario.CRASH,
    )


def _costs(data: Data) -> Answer | None:
    base, own = (data.rows(Scenario.CRASH, one) for one in (Tracking.NONE, Tracking.SPEC_NODE_NAME))
    named = data.rows(Scenario.GRACE, Tracking.NOMINATED_NODE_NAME)
    if not base or not own or not named:
        return None
    before = {row["seed"]: row["resizeSeconds"] for row in base if between_deletions(row)}
    pairs = [(before[row["seed"]], row["resizeSeconds"]) for row in own if row["seed"] in before]
    later = [after - other > 0.5 for other, after in pairs if None not in (other, after)]
    writes = paired(
        data.rows(Scenario.GRACE, Tracking.SPEC_NODE_NAME), named, lambda row: float(row["writes"])
    )
    if not later or writes is None:
        return None
    waits = "so that stopping times add up" if any(later) else "which was not seen to take longer"
    return Answer(
        "What do Options 3 and 4 cost?",
        "Tracking Preemption Nominations to Avoid Double Preemption",
        "Option 4 writes nothing; it waits for the victims that terminate before it evicts the rest of an "
        f"interrupted preemption, {waits}. Option 3 writes nominatedNodeName and clears it, and needs a "
        "change of the API server: since 1.35 that rejects the field on bound pods.",
        "Killed after the first deletion, resized more than 0.5 s later with Option 4 than with Option 1, "
        f"the same seeds: {percent(share(sum(later), len(later)))} of {len(later)}. With long grace periods, "
        f"writes of Option 3 against Option 4: {number(writes)} more (median of {writes.count} pairs).",
        Scenario.CRASH,
    )


def _fallback(data: Data) -> Answer | None:
    base = data.rows(Scenario.GRACE)
    if not base:
        return None
    differ, helps = [], []
    for one in list(Tracking)[1:]:
        mine = {row["seed"]: row for row in data.rows(Scenario.GRACE, one)}
        pairs = [(row, mine[row["seed"]]) for row in base if row["seed"] in mine]
        if pairs:
            more = sum(b["fallsBack"] > a["fallsBack"] for a, b in pairs)
            less = sum(b["fallsBack"] < a["fallsBack"] for a, b in pairs)
            differ.append(f"{OPTIONS[one]} {more} more and {less} fewer of {len(pairs)}")
            if more + less and share(less, more + less).low > 0.5:
                helps.append(one)
    helping = f"{_listed(helps)}: fewer fallbacks. The" if helps else "No: the"
    return Answer(
        "Does any option help where a grace period exceeds an autoscaler's fallback time?",
        "Graduation Criteria, Beta",
        f"{helping} resize waits for its victims with every option, and an autoscaler that falls back evicts "
        "the very pod for which they were evicted. It would have to see that a preemption is under way.",
        f"Victims take {GRACE_STOP_SECONDS[0]:g} to {GRACE_STOP_SECONDS[1]:g} s to stop, the fallback time "
        f"is {FALLBACK_SECONDS:g} s. Fallbacks: "
        f"{_shares(data, Scenario.GRACE, lambda row: bool(row['fallsBack']))}. Against Option 1, the same "
        f"seeds: {'; '.join(differ)}.",
        Scenario.GRACE,
    )


def _races(data: Data) -> Answer | None:
    rows = data.rows(Scenario.RACES)
    if not rows:
        return None
    early = share_of([row for row in rows if is_early(row)], is_race_c)
    late = share_of([row for row in rows if not is_early(row)], is_race_c)
    not_done = [row for one in Tracking for row in data.rows(Scenario.RACES, one) if is_stuck(row)]
    total = sum(len(data.rows(Scenario.RACES, one)) for one in Tracking)
    early_rows = [row for row in rows if is_early(row)]
    slower = {
        one: paired(
            early_rows,
            [row for row in data.rows(Scenario.RACES, one) if is_early(row)],
            lambda row: float(row["resizeSeconds"]),
        )
        for one in list(Tracking)[1:]
    }
    waits = [one for one, by in slower.items() if by and by.low > 0.1]
    return Answer(
        "Race A and race C: who gets the room, and is the other pod resized?",
        "Reconsideration Race Conditions",
        "C, of higher priority, if its request reaches the kubelet before the victim has stopped (race C), "
        f"else A (race A). {'Both were resized in every trial.' if not not_done else 'Not always both.'} "
        + (
            f"In race C, A waits longer with {_listed(waits)}: C's preemption, too, waits for the victim "
            "that terminates on its node, and A's starts again after it."
            if waits
            else "No option was measured to delay A."
        ),
        f"Race C: {percent(early)} of {early.count} where C asks while A's victim terminates, "
        f"{percent(late)} of {late.count} within 10 ms of its end (Option 1). Both resized: "
        f"{total - len(not_done)} of {total}, all options. A's time to resize where C asks early, against "
        "Option 1, the same seeds: "
        + "; ".join(f"{OPTIONS[one]} {number(by, ' s')} more" for one, by in slower.items() if by)
        + ".",
        Scenario.RACES,
    )


def _shipped(data: Data) -> Answer | None:
    rows = data.rows(Scenario.RACES, variant=SHIPPED)
    if not rows:
        return None
    stuck = share_of(rows, is_stuck)
    return Answer(
        "Does a parked pod A wake in race C, as Kubernetes 1.37 shipped it?",
        "Reconsideration Race Conditions",
        "The order in which A is parked and misses C's scale-up needs the scheduler to see the victim's end "
        "before C's request, and the kubelet C's request before the end: "
        + (
            "it was met, and A then waits for the flush after five minutes."
            if stuck.value
            else "it was not met in these trials. A unit test holds that order and shows the five minutes "
            "(docs/design/017)."
        ),
        f"A not resized within 30 s: {percent(stuck)} of {stuck.count}.",
        Scenario.RACES,
    )


def _kubelet(data: Data) -> Answer | None:
    rows = data.rows(Scenario.KUBELET, variant=AFTER_POLICY)
    alone = data.rows(Scenario.KUBELET, variant=AT_ONCE)
    if not rows or not alone:
        return None
    both = share_of(rows, lambda row: bool(row["byKubelet"] and row["evicted"]))
    others = share_of(alone, lambda row: bool(row["evicted"]))
    quiet = [row for row in rows if row["byKubelet"]]
    return Answer(
        "Do kubelet and scheduler both preempt for one resize?",
        "Kubelet Preemption",
        "Yes, once a critical pod's resize is Deferred: here since its node had a policy, which was "
        "removed. The scheduler evicts; the next end of any pod of the node makes the kubelet retry, and "
        "it preempts others, because a terminating victim still holds its room. No option prevents that: "
        "the kubelet does not read them. Without a policy the kubelet preempts at the request, the resize "
        f"is not Deferred, and the scheduler evicted {'no pod' if not others.value else 'pods, too'}.",
        f"Both evicted: {percent(both)} of {both.count} (Option 1). More victims than needed: "
        f"{_shares(data, Scenario.KUBELET, is_redundant, variant=AFTER_POLICY)}. The kubelet then evicted "
        f"{sum(row['byKubelet'] for row in quiet) / max(len(quiet), 1):.1f} further pods on average. "
        f"Without a policy, evicted by the scheduler, too: {percent(others)} of {others.count}.",
        Scenario.KUBELET,
    )


def _policy_lag(data: Data) -> Answer | None:
    found = {
        variant: share_of(rows, lambda row: bool(row["evicted"]))
        for variant in (OLD_KUBELET, *LATER, LIVE_READ, NEW_KUBELET)
        if (rows := data.rows(Scenario.POLICY_LAG, variant=variant))
    }
    if OLD_KUBELET not in found or LIVE_READ not in found:
        return None
    return Answer(
        "Is a stored policy of a node always obeyed?",
        "Version Skew Strategy",
        ("No. " if found[OLD_KUBELET].value else "Not seen otherwise here, but nothing ensures it. ")
        + "Beside a kubelet of N-3 the scheduler's cached node is the only protection; if its watch of nodes "
        "lags behind its watch of pods, it evicts. A kubelet that reports the policy adds a second view that "
        "must lag, too; once the scheduler's fallback is removed, its own watch is the only one. A read of "
        "the node from the API server before the first eviction closes it (one GET for a preemption); what "
        "remains is a policy that is written between this read and the deletion.",
        "Evictions in spite of the policy, simulated delays of up to 50 ms: "
        + "; ".join(f"{variant} {percent(one)} of {one.count}" for variant, one in found.items())
        + ". With a held watch it is certain, on real processes, too: scenarios/kep-5836-policy-lag.yaml. "
        "Simulated, the scheduler that reads the node, and the one beside a kubelet of 1.37, then evict "
        "nothing (tests/lab/study/test_composition.py).",
        Scenario.POLICY_LAG,
    )


def _four_pods(data: Data) -> Answer | None:
    by_fit = {fit: data.rows(Scenario.FOUR_PODS, fit=fit) for fit in Fit}
    if not all(by_fit.values()):
        return None
    counts = {fit: sorted({row["evicted"] for row in rows}) for fit, rows in by_fit.items()}
    shown = {fit: " or ".join(map(str, found)) for fit, found in counts.items()}
    return Answer(
        "Does the scheduler's count of other pods evict more than needed?",
        "Risk of Additional Preemption",
        f"Yes: in the KEP's example {shown[Fit.SCHEDULER]} pods go instead of {shown[Fit.KUBELET]}. The "
        "kubelet's count for the other pods, max(allocated, actual), removes the additional preemption.",
        f"--resize-fit=scheduler: {shown[Fit.SCHEDULER]} evicted in each of {len(by_fit[Fit.SCHEDULER])} "
        f"trials; --resize-fit=kubelet: {shown[Fit.KUBELET]} in each of {len(by_fit[Fit.KUBELET])}. X is "
        "drawn.",
        Scenario.FOUR_PODS,
    )


def _throughput(data: Data) -> Answer | None:
    found = {
        (load, column): median(values)
        for load in (QUIET, CHURN)
        for column in ("podsPerSecond", "cpuMilliseconds")
        if (values := ratios(data, load, column))
    }
    if len(found) < 4:
        return None

    def of(load: str) -> str:
        rate, cpu = found[load, "podsPerSecond"], found[load, "cpuMilliseconds"]
        return f"new pods per second {number(rate)}, the scheduler's processor time for one {number(cpu)}"

    def costs(load: str) -> str:
        cpu = found[load, "cpuMilliseconds"]
        more = f"{100 * (cpu.low - 1):.0f} to {100 * (cpu.high - 1):.0f}% more processor time"
        return more if cpu.low > 1 else "no measured cost"

    return Answer(
        "Do deferred pods slow the scheduling of new pods?",
        "Performance impact",
        f"1,000 deferred pods that cannot preempt: {costs(QUIET)} for a new pod; with 20 deletions a second "
        f"on their nodes: {costs(CHURN)}. The queue measured here finds unschedulable pods by node; one "
        "that asks a hint for each deferred pod at each deletion pays more (docs/design/017).",
        f"Ratios to no deferred pods, median: {of(QUIET)}; with deletions: {of(CHURN)}. "
        f"{found[QUIET, 'cpuMilliseconds'].count} pairs on real processes, all options together.",
        Scenario.THROUGHPUT,
    )


_ANSWERS: tuple[Callable[[Data], Answer | None], ...] = (
    _crash,
    _grace,
    _costs,
    _marked,
    _fallback,
    _races,
    _shipped,
    _kubelet,
    _policy_lag,
    _four_pods,
    _throughput,
)
