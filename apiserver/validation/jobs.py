"""Jobs (kube-apiserver 1.36, pkg/apis/batch/validation)."""

from __future__ import annotations

from apiserver.validation import field, names, templates
from apiserver.validation.go_dump import dump
from apiserver.validation.selectors import label_selector
from machinery.errors import Cause
from machinery.pb import batch
from machinery.selectors import LabelSelector, SelectorError
from machinery.wire import codec

_COUNTS = (
    "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
    "backoffLimitPerIndex", "maxFailedIndexes",
)  # fmt: skip
_MODES = ("NonIndexed", "Indexed")
_REPLACEMENTS = ("Failed", "TerminatingOrFailed")
_RESTARTS = ("OnFailure", "Never")


def job(obj: batch.Job) -> list[Cause]:
    spec = obj.spec
    errors: list[Cause] = []
    for name in _COUNTS:
        if spec.HasField(name):
            errors += field.non_negative(f"spec.{name}", getattr(spec, name))
    errors += _mode(obj)
    errors += templates.pod_template("spec.template", spec.template)
    errors += _restarts(spec)
    if spec.HasField("podReplacementPolicy") and spec.podReplacementPolicy not in _REPLACEMENTS:
        at = "spec.podReplacementPolicy"
        errors.append(field.not_supported(at, spec.podReplacementPolicy, _REPLACEMENTS))
    return errors + _selector(obj)


def _mode(obj: batch.Job) -> list[Cause]:
    spec = obj.spec
    if not spec.HasField("completionMode"):
        return []
    if spec.completionMode not in _MODES:
        return [field.not_supported("spec.completionMode", spec.completionMode, _MODES)]
    errors: list[Cause] = []
    if spec.completionMode == "Indexed":
        if not spec.HasField("completions"):
            problem = "when completion mode is Indexed"
            errors.append(field.required("spec.completions", problem))
        elif spec.completions:
            # A pod's name and hostname is the job's with its index.
            last = f"{obj.metadata.name}-{spec.completions - 1}"
            errors += [
                field.invalid(
                    "metadata.name",
                    obj.metadata.name,
                    f"will not able to create pod with invalid DNS label: {last}",
                )
                for _ in names.dns_label(last)[:1]
            ]
    elif spec.HasField("backoffLimitPerIndex"):
        problem = "requires indexed completion mode"
        errors.append(field.invalid("spec.backoffLimitPerIndex", spec.backoffLimitPerIndex, problem))
    return errors


def _restarts(spec: batch.JobSpec) -> list[Cause]:
    path, policy = "spec.template.spec.restartPolicy", spec.template.spec.restartPolicy
    if policy == "Always":
        return [field.required(path, 'valid values: "OnFailure", "Never"')]
    if policy not in _RESTARTS:
        return [field.not_supported(path, policy, _RESTARTS)]
    if spec.HasField("podFailurePolicy") and policy != "Never":
        problem = 'only "Never" is supported when podFailurePolicy is specified'
        return [field.invalid(path, policy, problem)]
    return []


def _selector(obj: batch.Job) -> list[Cause]:
    spec = obj.spec
    if not spec.HasField("selector"):
        return [field.required("spec.selector")]
    errors = label_selector("spec.selector", spec.selector)
    labels = spec.template.metadata.labels
    try:
        selector = LabelSelector.from_message(spec.selector)
    except SelectorError:
        return errors
    if not selector.matches(labels):
        problem = "`selector` does not match template `labels`"
        value = dict(sorted(labels.items())) if labels else None
        errors.append(field.invalid("spec.template.metadata.labels", value, problem))
    if not spec.manualSelector:
        generated = {
            "controller-uid": obj.metadata.uid,
            "job-name": obj.metadata.name,
            "batch.kubernetes.io/controller-uid": obj.metadata.uid,
            "batch.kubernetes.io/job-name": obj.metadata.name,
        }
        if not selector.matches(generated):
            shown = codec.to_json(spec.selector)
            errors.append(field.invalid("spec.selector", shown, "`selector` not auto-generated"))
    return errors


def change(new: batch.Job, old: batch.Job) -> list[Cause]:
    errors: list[Cause] = []
    if new.spec.completionMode == "Indexed":
        if new.spec.completions != old.spec.completions and new.spec.completions != new.spec.parallelism:
            problem = "field is immutable, can only be modified in tandem with spec.parallelism"
            errors.append(field.invalid("spec.completions", new.spec.completions, problem))
    else:
        after, before = (
            each.spec.completions if each.spec.HasField("completions") else None for each in (new, old)
        )
        errors += field.immutable("spec.completions", after, before)
    if new.spec.selector != old.spec.selector:
        shown = codec.to_json(new.spec.selector)
        errors.append(field.invalid("spec.selector", shown, field.IMMUTABLE))
    # A job that waits may be told where it is to run.
    if new.spec.template != old.spec.template and not (
        old.spec.suspend and not old.status.HasField("startTime")
    ):
        errors.append(field.invalid("spec.template", dump(new.spec.template), field.IMMUTABLE))
    return errors + field.immutable("spec.completionMode", new.spec.completionMode, old.spec.completionMode)


def status(new: batch.Job, old: batch.Job) -> list[Cause]:
    errors: list[Cause] = []
    for name in ("active", "succeeded", "failed", "ready", "terminating"):
        errors += field.non_negative(f"status.{name}", getattr(new.status, name))
    return errors
