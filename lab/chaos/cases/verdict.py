"""The verdict on one run with perturbations. No I/O."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fnmatch import fnmatchcase
from typing import Final

from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.cases.difference import Difference, first_difference, writes_around
from nominee.lab.chaos.cases.trace import TracedWrite
from nominee.lab.reports.records import Record
from nominee.lab.scenario.fields.options import AcceptedFinding
from nominee.lab.scenario.result import Outcome, ScenarioResult, Violation
from nominee.machinery.wire.values.scalars import Json


def _known(kinds: str, *observations: str, reason: str, link: str) -> list[AcceptedFinding]:
    """Return a finding for each observation and each of several patterns of perturbations."""
    return [
        AcceptedFinding(case=each, observation=observation, reason=reason, link=link)
        for observation in observations
        for each in kinds.split()
    ]


def _at(places: str, kinds: str) -> str:
    """Return the patterns of perturbations of each of these kinds at each place."""
    return " ".join(f"{place}={kind}*" for place in places.split() for kind in kinds.split())


_WRITES_LATE: Final = "away conflict crash cut delay hang lose-re pause restart slow"
_OF_CONTROLLERS: Final = (
    *("DisruptionAllowed", "Progressing", "ReplicaFailure", "Suspended"),
    *("AbleToScale", "ScalingActive", "ScalingLimited"),
)
"""Types of conditions that controllers write with the time of their clock, beside Available."""
KNOWN: Final[tuple[AcceptedFinding, ...]] = (
    *_known(
        _at("kubelet-*:* apiserver*:*", _WRITES_LATE) + " " + _at("kubelet-*:*", "error switch"),
        "conditions-keep-their-times: the condition *Ready* became *, and its lastTransitionTime",
        "conditions-keep-their-times: the condition Initialized became *, and its lastTransitionTime",
        reason="times have whole seconds: two transitions in one second have one time, also if a kubelet's "
        "write of the second one fails, and is made again later with its time",
        link="https://github.com/kubernetes/kubernetes/blob/v1.36.2/pkg/kubelet/status/status_manager.go",
    ),
    *_known(
        _at("controllers*:apiserver* apiserver*:etcd*", _WRITES_LATE),
        "conditions-keep-their-times: the condition Available became *, and its lastTransitionTime",
        reason="times have whole seconds: a Deployment that became available in the second of its creation, "
        "and whose status waits for etcd, has the time of both",
        link="https://github.com/kubernetes/kubernetes/blob/v1.36.2/pkg/controller/deployment/util/"
        "deployment_util.go",
    ),
    *_known(
        "controllers*:apiserver*.Update.*=slow*",
        *(
            f"conditions-keep-their-times: the condition {name} became *, and its lastTransitionTime"
            for name in _OF_CONTROLLERS
        ),
        reason="times have whole seconds: the status of a second transition in one second waits in the "
        "controllers before it is sent, and no answer shows when it was computed",
        link="https://github.com/kubernetes/kubernetes/blob/v1.36.2/staging/src/k8s.io/apimachinery/pkg/api/"
        "meta/conditions.go",
    ),
    *_known(
        _at("apiserver*:*", _WRITES_LATE),
        "conditions-keep-their-times: the condition PodScheduled became True, and its lastTransitionTime",
        reason="an API server gives a binding its time before the transaction: if it is frozen then, a pod "
        "that was unschedulable in the same second is bound later with the time of both",
        link="https://github.com/kubernetes/kubernetes/blob/v1.36.2/pkg/registry/core/pod/storage/storage.go",
    ),
    *_known(
        _at(
            "apiserver*:apiserver.storage.write.before apiserver*:etcd.Txn.poddisruptionbudgets "
            "apiserver*:etcd",
            "cut delay pause slow",
        ),
        "conditions-keep-their-times: the condition DisruptionAllowed became False, and its "
        "lastTransitionTime",
        reason="an API server gives a budget that an eviction uses up its time before the transaction: if "
        "this waits, a budget that has allowed a disruption since the same second has the time of both",
        link="https://github.com/kubernetes/kubernetes/blob/v1.36.2/pkg/registry/core/pod/storage/eviction.go",
    ),
    *_known(
        _at("scheduler*:* apiserver*:*", _WRITES_LATE),
        "conditions-keep-their-times: the condition PodScheduled is still *, and its lastTransitionTime",
        reason="a scheduler whose cache does not have its last write yet takes the condition for new",
        link="https://github.com/kubernetes/kubernetes/blob/v1.36.2/pkg/scheduler/schedule_one.go",
    ),
    *_known(
        "*",
        "has the taint ToBeDeletedByClusterAutoscaler, and is not being deleted, since a write of the taint "
        "was reported as failed",
        reason="a taint whose write, or whose removal, is reported as failed stays until it is "
        "five minutes old",
        link="https://github.com/kubernetes/autoscaler/blob/cluster-autoscaler-1.36.0/cluster-autoscaler/core/"
        "scaledown/actuation/actuator.go",
    ),
    *_known(
        "controllers*:apiserver*.Delete.jobs=* controllers*:apiserver*=cut* apiserver*:process=* "
        "apiserver*:*=crash* apiserver*:*Delete* apiserver*:apiserver.write.before=error*",
        "keeps * Jobs that are ",
        reason="an old Job that could not be deleted is tried again with the next event or schedule of its "
        "CronJob",
        link="https://github.com/kubernetes/kubernetes/blob/v1.36.2/pkg/controller/cronjob/cronjob_controllerv2.go",
    ),
    *_known(
        "controllers*:apiserver*.Create.pods=lose-response*",
        "job * live pods, and should have 0",
        "job * shows 0 active in its status, and its pods are ",
        "job * shows 0 ready in its status, and its pods are ",
        reason="a pod whose creation had no answer is not expected: a Job that fails before the watch shows "
        "the pod does not delete it, and a finished one is not looked at again",
        link="https://github.com/kubernetes/kubernetes/blob/v1.36.2/pkg/controller/job/job_controller.go",
    ),
    *_known(
        _at(
            "scheduler*:scheduler.preempt.* scheduler*:apiserver*.Patch.pods "
            "scheduler*:apiserver*.Delete.pods",
            "delay hang lose-response pause slow",
        )
        + " "
        + _at("apiserver*:etcd*.Txn.pods", "slow hang")
        + " *=recreate* *=remove*",
        "waits in the state Gated, and fits on",
        "waits in the state Gated, and may preempt on",
        reason="a preemptor whose last victim another client, or another preemptor, deletes before its "
        "eviction is woken by no event, and a gated pod is not flushed",
        link="https://github.com/kubernetes/kubernetes/issues/141694",
    ),
    *_known(
        "apiserver*:process=away* apiserver*:process=crash-loop*",
        "and its PodScheduled became False (",
        "was failed on * with the reason OutOf",
        "devices-have-one-claim: the claim is no longer reserved while ",
        reason="a scheduler whose binding has no answer asks for the pod for 12 s, and then takes it for "
        "failed and its room for free, as kube-scheduler does at once",
        link="https://github.com/kubernetes/kubernetes/blob/v1.36.2/pkg/scheduler/schedule_one.go",
    ),
)
"""The accepted findings of all scenarios."""


class Verdict(Enum):
    """The end of a case.

    ACCEPTED: all that does not hold is among the scenario's accepted findings. INCONCLUSIVE: a wait that may
    not end with the disturbance (`tolerance.doubtful_waits`) did not; later steps were not tried. UNREACHED:
    the run did not come to a perturbation. ERROR: the case could not be run.
    """

    HELD = "held"
    BROKEN = "broken"
    ACCEPTED = "accepted"
    INCONCLUSIVE = "inconclusive"
    UNREACHED = "unreached"
    ERROR = "error"

    @property
    def is_applied(self) -> bool:
        """Return whether the perturbations took place, and something can be said about the program."""
        return self not in (Verdict.UNREACHED, Verdict.ERROR)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult(Record):
    """The result of one case: the observation, and the command that reproduces it.

    `accepted` are the reasons and links of the accepted findings that it shows.
    """

    case: Case
    verdict: Verdict
    observation: str = ""
    disturbance: str = ""
    """The case as a sentence."""
    difference: Difference | None = None
    """Of a finding: the first moment at which the history differs from the undisturbed one."""
    writes: tuple[str, ...] = ()
    """Of a finding: the writes of `subject` around this moment."""
    subject: str = ""
    objects: tuple[str, ...] = ()
    """The objects at fault, as `Pod default/a`, as far as the run names them."""
    violations: tuple[Violation, ...] = ()
    accepted: tuple[str, ...] = ()
    novelty: int = 0
    """The number of features of its history that no run before it had."""
    seconds: float = 0.0
    directory: str = ""
    reproduce: str = ""

    def as_json(self) -> dict[str, Json]:
        """Return the result as JSON."""
        difference = self.difference.as_json() if self.difference is not None else None
        return {**Record.as_json(self), "case": str(self.case), "difference": difference}


def judge(
    case: Case,
    result: ScenarioResult,
    *,
    reached: bool,
    unsettled: str = "",
    accepted_findings: Sequence[AcceptedFinding] = (),
    doubtful_waits: Container[int] = (),
) -> CaseResult:
    """Return the verdict on a run of a scenario.

    `reached`: every perturbation took effect. `unsettled` is what the cluster had not done after the
    perturbations had ended, "" if it had come to rest. `doubtful_waits` are the lines of the waits that may
    not end for a reason of the disturbance's own; they ended in the undisturbed run.
    """
    findings = list(_findings(result, unsettled))
    known = (*accepted_findings, *KNOWN)
    reasons = [_accepted(each, case, known) for each in findings]
    others = [each for each, reason in zip(findings, reasons, strict=True) if not reason]
    accepted = tuple(dict.fromkeys(reason for reason in reasons if reason))
    verdict, observation = Verdict.HELD, ""
    failed = next((step for step in result.steps if step.outcome is Outcome.FAILED), None)
    if others == [result.reason] and failed is not None and failed.line in doubtful_waits:
        verdict, observation = Verdict.INCONCLUSIVE, result.reason
    elif others:
        verdict, observation = Verdict.BROKEN, others[0]
    elif findings:
        verdict, observation = Verdict.ACCEPTED, findings[0]
    elif result.outcome in (Outcome.ERROR, Outcome.SKIPPED):
        verdict, observation = Verdict.ERROR, result.reason
    elif not reached:
        verdict = Verdict.UNREACHED
    return CaseResult(
        case=case,
        verdict=verdict,
        observation=observation,
        disturbance=case.describe(),
        objects=result.objects,
        violations=result.violations,
        accepted=accepted,
        seconds=result.seconds,
        directory=result.directory,
    )


def is_accepted(violation: Violation, case: Case, accepted_findings: Sequence[AcceptedFinding]) -> bool:
    """Return whether a violation in a run of a case is among the accepted findings, or known."""
    return bool(_accepted(_text(violation), case, (*accepted_findings, *KNOWN)))


def with_history(
    result: CaseResult, undisturbed: Sequence[TracedWrite], run: Sequence[TracedWrite]
) -> CaseResult:
    """Return the result with where its history differs, and the object's writes around this moment.

    The object is one that an invariant, the step that failed or the observation names, or else the one that
    differs first.
    """
    subject = _subject(result, run) or _subject(result, undisturbed)
    own = [[write for write in writes if write.subject == subject] for writes in (undisturbed, run)]
    difference = first_difference(*own) or first_difference(undisturbed, run)
    if difference is None:
        return result
    subject = subject or difference.subject
    writes = tuple(writes_around(run, subject, difference.seconds))
    return replace(result, difference=difference, subject=subject, writes=writes)


def _subject(result: CaseResult, writes: Sequence[TracedWrite]) -> str:
    """Return the first object with writes that the result names, or ""."""
    traced = dict.fromkeys(write.subject for write in writes)
    named = [*(each for violation in result.violations for each in violation.objects), *result.objects]
    found = next((each for each in named if each in traced), "")
    words = f" {result.observation.lower()} "
    return found or next(
        (each for each in traced if re.search(rf"{re.escape(each.lower())}(?![-.\w])", words)), ""
    )


def _findings(result: ScenarioResult, unsettled: str) -> Iterator[str]:
    """Yield all that does not hold; the parts of `unsettled` one by one."""
    yield from map(_text, result.violations)
    for part in unsettled.split("; ") if unsettled else ():
        yield f"the cluster does not come to rest: {part}"
    is_repeated = any(violation.message in result.reason for violation in result.violations)
    if result.outcome is Outcome.FAILED and not is_repeated:
        yield result.reason


def _text(violation: Violation) -> str:
    return f"{violation.invariant}: {violation.message}"


def _accepted(finding: str, case: Case, accepted: Sequence[AcceptedFinding]) -> str:
    """Return the reason and the link of the accepted finding that this one is, or ""."""
    for each in accepted:
        names = [str(perturbation) for perturbation in case.perturbations] or [str(case)]
        is_case = any(fnmatchcase(name, each.case) for name in names)
        text = ".*".join(map(re.escape, each.observation.split("*")))
        if is_case and re.search(text, finding, re.DOTALL):
            return f"{each.reason} ({each.link})"
    return ""
