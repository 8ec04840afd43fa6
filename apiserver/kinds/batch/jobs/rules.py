"""Jobs: their strategy, columns and selectable fields (kube-apiserver 1.36, pkg/registry/batch/job)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nominee.apiserver.kinds.batch.jobs import specs as job_specs
from nominee.apiserver.kinds.batch.jobs import status as job_status
from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.strategy import Environment, StatusStrategy, Strategy
from nominee.apiserver.objects.selectable_fields import metadata_fields, selectable
from nominee.apiserver.printing import cells
from nominee.apiserver.printing.columns import AGE, CONTAINERS, NAME, Cells, Column, Columns, wide
from nominee.apiserver.validation import field, names
from nominee.apiserver.validation.equality import same
from nominee.apiserver.validation.go_dump import dump
from nominee.apiserver.validation.objects import metadata
from nominee.apiserver.validation.objects.selectors import label_selector
from nominee.apiserver.validation.pods import options as pod_options
from nominee.apiserver.validation.pods import warnings as pod_warnings
from nominee.apiserver.validation.pods.options import PodOptions
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.names import go_quote
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import batch, core
from nominee.machinery.api.selectors import LabelSelector, SelectorError, shown_label_selector
from nominee.machinery.features.gates import Gates
from nominee.machinery.printing.durations import human_duration
from nominee.machinery.wire import codec

_PREFIX = "batch.kubernetes.io/"
# A pod may be somewhere else then, and look otherwise; its containers are what they were.
_DIRECTIVES = ("nodeSelector", "tolerations", "schedulingGates")


class JobStrategy(Strategy[batch.Job]):
    """A job selects its own pods, by its uid, unless its maker says that they know better."""

    counts_generation = True
    orphans_dependents = True
    orphaning_warning = (
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to"
        " remove them or set propagationPolicy=Orphan to suppress this warning"
    )

    def prepare_for_create(self, new: batch.Job, env: Environment) -> None:
        super().prepare_for_create(new, env)
        if new.spec.manualSelector:
            return
        labels = new.spec.template.metadata.labels
        for key, value in _generated(new).items():
            if key not in labels:
                labels[key] = value
        selected = new.spec.selector.matchLabels
        if f"{_PREFIX}controller-uid" not in selected:
            selected[f"{_PREFIX}controller-uid"] = new.metadata.uid

    def validate(self, new: batch.Job, env: Environment) -> list[Cause]:
        return self._job(new, pod_options.of(env.gates), prefixed=True)

    def _job(self, new: batch.Job, options: PodOptions, *, prefixed: bool) -> list[Cause]:
        errors = [*self.validate_metadata(new), *_generated_selector(new, prefixed=prefixed)]
        return [*errors, *_spec(new.spec, options), *_hostname(new)]

    def validate_update(self, new: batch.Job, old: batch.Job, env: Environment) -> list[Cause]:
        options = pod_options.of(env.gates, old.spec.template.spec)
        labels = old.spec.template.metadata.labels
        prefixed = all(f"{_PREFIX}{name}" in labels for name in ("job-name", "controller-uid"))
        # Upstream looks at the spec twice.
        return [
            *self._job(new, options, prefixed=prefixed),
            *metadata.object_meta_update(new.metadata, old.metadata),
            *_spec(new.spec, options),
            *change(new, old, env.gates),
        ]

    def warnings(self, new: batch.Job, old: batch.Job | None) -> Sequence[str]:
        if old is not None and new.metadata.generation == old.metadata.generation:
            return ()
        spec = new.spec
        found = [] if old is not None else pod_warnings.of_name(new.metadata.name, "Pod names and hostnames")
        found += job_specs.many_indexes("spec", spec)
        return found + pod_warnings.of_template(spec.template.metadata, spec.template.spec, "spec.template.")


class JobStatusStrategy(StatusStrategy[batch.Job]):
    def validate_update(self, new: batch.Job, old: batch.Job, env: Environment) -> list[Cause]:
        return metadata.object_meta_update(new.metadata, old.metadata) + job_status.update(new, old)


def _generated(job: batch.Job) -> dict[str, str]:
    values = {"controller-uid": job.metadata.uid, "job-name": job.metadata.name}
    return values | {f"{_PREFIX}{name}": value for name, value in values.items()}


def _generated_selector(job: batch.Job, *, prefixed: bool) -> Iterator[Cause]:
    """validateGeneratedSelector; `prefixed`: the labels with Kubernetes' prefix must be there too."""
    if job.spec.manualSelector or not job.spec.HasField("selector"):
        return
    expected = {key: value for key, value in _generated(job).items() if prefixed or "/" not in key}
    labels = job.spec.template.metadata.labels
    for key, value in expected.items():
        path, problem = f"spec.template.metadata.labels[{key}]", f"must be '{value}'"
        if key not in labels:
            yield field.required(path, problem)
        elif labels[key] != value:
            yield field.invalid(path, dict(sorted(labels.items())), problem)
    try:
        if not LabelSelector.from_message(job.spec.selector).matches(expected):
            shown = codec.to_json(job.spec.selector)
            yield field.invalid("spec.selector", shown, "`selector` not auto-generated")
    except SelectorError:
        pass


def _spec(spec: batch.JobSpec, options: PodOptions) -> Iterator[Cause]:
    """ValidateJobSpec."""
    yield from job_specs.job_spec("spec", spec, options)
    labels = spec.template.metadata.labels
    if spec.HasField("selector"):
        yield from label_selector("spec.selector", spec.selector)
        try:
            matches = LabelSelector.from_message(spec.selector).matches(labels)
        except SelectorError:
            return
    else:
        yield field.required("spec.selector")
        matches = False
    if not matches:
        problem = "`selector` does not match template `labels`"
        value = dict(sorted(labels.items())) or None
        yield field.invalid("spec.template.metadata.labels", value, problem)


def _hostname(job: batch.Job) -> list[Cause]:
    """The hostname of an Indexed Job's pod is the Job's name with the index."""
    if job.spec.completionMode != "Indexed" or job.spec.completions <= 0:
        return []
    last = f"{job.metadata.name}-{job.spec.completions - 1}"
    if not names.dns_label(last):
        return []
    problem = f"will not able to create pod with invalid DNS label: {last}"
    return [field.invalid("metadata.name", job.metadata.name, problem)]


def change(new: batch.Job, old: batch.Job, gates: Gates) -> Iterator[Cause]:
    """Check the changes of the spec in an update (ValidateJobSpecUpdate, after the spec itself)."""
    yield from _completions(new.spec, old.spec)
    if not same(new.spec.selector, old.spec.selector):
        shown = codec.to_json(new.spec.selector) if new.spec.HasField("selector") else None
        yield field.invalid("spec.selector", shown, field.IMMUTABLE)
    yield from _template(new, old, gates)
    for name in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        after, before = _value(new.spec, name), _value(old.spec, name)
        yield from field.immutable(f"spec.{name}", after, before)


def _value(spec: batch.JobSpec, name: str) -> object:
    """Return the text of a field's value in errors; None if it is not set."""
    if not any(given.name == name for given, _ in spec.ListFields()):
        return None
    value = getattr(spec, name)
    return dump(value) if hasattr(value, "DESCRIPTOR") else value


def _completions(new: batch.JobSpec, old: batch.JobSpec) -> list[Cause]:
    """validateCompletions; an Indexed Job may be scaled."""
    path, after, before = "spec.completions", _value(new, "completions"), _value(old, "completions")
    if new.completionMode != "Indexed":
        return field.immutable(path, after, before)
    if after is None or after in (before, new.parallelism):
        return []
    return [field.invalid(path, after, "can only be modified in tandem with spec.parallelism")]


def _template(new: batch.Job, old: batch.Job, gates: Gates) -> list[Cause]:
    """validatePodTemplateUpdate (KEP-2926, KEP-5440).

    Of a suspended Job that has no pods where its pods may run can change, and what its containers ask for.
    """
    suspended, started = old.spec.suspend, old.status.HasField("startTime")
    idle = old.status.active == 0 and (
        not started or any(c.type == "Suspended" and c.status == "True" for c in old.status.conditions)
    )
    if gates.enabled("MutableSchedulingDirectivesForSuspendedJobs"):
        directives = suspended and idle
    else:
        directives = suspended and not started
    resources = suspended and idle and gates.enabled("MutablePodResourcesForSuspendedJobs")
    template = new.spec.template
    before = copy_of(old.spec.template)
    if directives:
        _take_directives(before, template)
    if not resources:
        if same(template, before):
            return []
        return [field.invalid("spec.template", dump(template), field.IMMUTABLE)]
    _take_resources(before.spec, template.spec)
    if same(template.spec, before.spec):
        return []
    return [field.invalid("spec.template.spec", dump(template.spec), field.IMMUTABLE)]


def _take_directives(template: core.PodTemplateSpec, new: core.PodTemplateSpec) -> None:
    """Copy the template's scheduling directives, labels and annotations, in place."""
    for name in ("labels", "annotations"):
        template.metadata.ClearField(name)
        getattr(template.metadata, name).update(getattr(new.metadata, name))
    spec = template.spec
    for name in _DIRECTIVES:
        spec.ClearField(name)
        getattr(spec, name).MergeFrom(getattr(new.spec, name))
    if not new.spec.HasField("affinity"):
        spec.affinity.ClearField("nodeAffinity")
        if not spec.affinity.ListFields():
            spec.ClearField("affinity")
        return
    affinity = spec.affinity
    affinity.SetInParent()
    affinity.ClearField("nodeAffinity")
    if new.spec.affinity.HasField("nodeAffinity"):
        affinity.nodeAffinity.CopyFrom(new.spec.affinity.nodeAffinity)


def _take_resources(spec: core.PodSpec, new: core.PodSpec) -> None:
    """Copy the containers' resources, in place; they must keep their names."""
    for containers, others in (
        (spec.containers, new.containers),
        (spec.initContainers, new.initContainers),
    ):
        if len(containers) != len(others):
            continue
        for container, other in zip(containers, others, strict=True):
            if container.name == other.name:
                container.resources.CopyFrom(other.resources)


def _fields(job: batch.Job) -> dict[str, str]:
    return metadata_fields(job) | {"status.successful": str(job.status.succeeded)}


def _job_status(job: batch.Job) -> str:
    true = {condition.type for condition in job.status.conditions if condition.status == "True"}
    if "Complete" in true:
        return "Complete"
    if "Failed" in true:
        return "Failed"
    if job.metadata.HasField("deletionTimestamp"):
        return "Terminating"
    found = (name for name in ("Suspended", "FailureTarget", "SuccessCriteriaMet") if name in true)
    return next(found, "Running")


def _row(job: batch.Job, now: float) -> Cells:
    spec, status = job.spec, job.status
    if spec.HasField("completions"):
        completions = f"{status.succeeded}/{spec.completions}"
    elif spec.parallelism > 1:
        completions = f"{status.succeeded}/1 of {spec.parallelism}"
    else:
        completions = f"{status.succeeded}/1"
    took = ""
    if status.HasField("startTime"):
        end = status.completionTime.seconds if status.HasField("completionTime") else now
        took = human_duration(end - status.startTime.seconds)
    own = [_job_status(job), completions, took]
    return [*own, *cells.containers(job.spec.template), shown_label_selector(job.spec.selector)]


def _unknown_field(label: str) -> str:
    return f"field label {go_quote(label)} not supported for Job"


RULES = KindRules(
    kind=kinds.JOB,
    strategy=JobStrategy(kinds.JOB, {"status": JobStatusStrategy(kinds.JOB)}),
    columns=Columns(
        _row,
        NAME,
        Column("Status", "Status of the job."),
        Column("Completions", "jobstatus-batch-v1#succeeded"),
        Column("Duration", "Time required to complete the job."),
        AGE,
        *CONTAINERS,
        wide("Selector", "jobspec-batch-v1#selector"),
    ),
    fields=selectable(batch.Job, _fields, unknown=_unknown_field),
)
