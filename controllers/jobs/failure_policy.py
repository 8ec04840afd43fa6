"""The rules of a Job's podFailurePolicy. Pure.

Source: kube-controller-manager 1.36, pkg/controller/job/pod_failure_policy.go; KEP-3329, KEP-3850.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from nominee.machinery.api.pb import batch, core


class Match(NamedTuple):
    """The action of the first rule that a failed pod matches, "" without one; `message` is of FailJob."""

    action: str = ""
    message: str = ""

    @property
    def counts(self) -> bool:
        """Report whether the failure counts towards the back-off limits."""
        return self.action != "Ignore"


def match(job: batch.Job, pod: core.Pod) -> Match:
    """Return the action for a failed pod."""
    where = f"{pod.metadata.namespace}/{pod.metadata.name}"
    for index, rule in enumerate(job.spec.podFailurePolicy.rules):
        if rule.HasField("onExitCodes"):
            status = _container(pod, rule.onExitCodes)
            if status is None:
                continue
            code = status.state.terminated.exitCode
            about = f"Container {status.name} for pod {where} failed with exit code {code}"
        else:
            condition = _condition(pod, rule.onPodConditions)
            if condition is None:
                continue
            about = f"Pod {where} has condition {condition.type}"
        failed = rule.action == "FailJob"
        return Match(rule.action, f"{about} matching {rule.action} rule at index {index}" if failed else "")
    return Match()


def fail_message(job: batch.Job, failed: Iterable[core.Pod]) -> str:
    """Return why the Job fails: the message of the first pod that matches a FailJob rule, or ""."""
    return next((found.message for pod in failed if (found := match(job, pod)).message), "")


def _container(
    pod: core.Pod, wanted: batch.PodFailurePolicyOnExitCodesRequirement
) -> core.ContainerStatus | None:
    for status in (*pod.status.containerStatuses, *pod.status.initContainerStatuses):
        code = status.state.terminated.exitCode
        if not status.state.HasField("terminated") or code == 0:
            continue
        if wanted.HasField("containerName") and wanted.containerName != status.name:
            continue
        if (code in wanted.values) == (wanted.operator == "In"):
            return status
    return None


def _condition(
    pod: core.Pod, patterns: Iterable[batch.PodFailurePolicyOnPodConditionsPattern]
) -> core.PodCondition | None:
    wanted = {(pattern.type, pattern.status) for pattern in patterns}
    return next((each for each in pod.status.conditions if (each.type, each.status) in wanted), None)
