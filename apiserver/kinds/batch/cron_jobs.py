"""CronJobs (kube-apiserver 1.36, pkg/apis/batch/validation and pkg/registry/batch/cronjob)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from nominee.apiserver.kinds.batch.jobs import specs as job_specs
from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.strategy import Environment, StatusStrategy, Strategy
from nominee.apiserver.printing.cells import NONE, UNSET, containers, since
from nominee.apiserver.printing.columns import AGE, CONTAINERS, NAME, Cells, Column, Columns, wide
from nominee.apiserver.validation import field
from nominee.apiserver.validation.objects import metadata
from nominee.apiserver.validation.pods import options as pod_options
from nominee.apiserver.validation.pods import warnings as pod_warnings
from nominee.apiserver.validation.pods.options import PodOptions
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import batch
from nominee.machinery.api.selectors import shown_label_selector
from nominee.machinery.wire import codec
from nominee.machinery.wire.values import cron_schedule

# A Job's name is the CronJob's and eleven characters more, and makes a label of 63.
_NAME_BYTES_MAX = 52
_POLICIES = ("Allow", "Forbid", "Replace")
_zone_part = re.compile(r"[A-Za-z._0-9+-]{1,14}", re.ASCII)
_TEMPLATE = "spec.jobTemplate.spec"
_MORE = "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/"


class CronJobStrategy(Strategy[batch.CronJob]):
    """The main resource."""

    counts_generation = True

    def validate(self, new: batch.CronJob, env: Environment) -> list[Cause]:
        errors = self.validate_metadata(new) + _spec(new.spec, None, pod_options.of(env.gates))
        if len(new.metadata.name.encode()) > _NAME_BYTES_MAX:
            problem = f"must be no more than {_NAME_BYTES_MAX} characters"
            errors.append(field.invalid("metadata.name", new.metadata.name, problem))
        return errors

    def validate_update(self, new: batch.CronJob, old: batch.CronJob, env: Environment) -> list[Cause]:
        options = pod_options.of(env.gates, old.spec.jobTemplate.spec.template.spec)
        changed = metadata.object_meta_update(new.metadata, old.metadata)
        return changed + _spec(new.spec, old.spec, options)

    def warnings(self, new: batch.CronJob, old: batch.CronJob | None) -> Sequence[str]:
        found: list[str] = []
        if old is None:
            found += pod_warnings.of_name(new.metadata.name, "Pod names and hostnames")
        if old is None or new.metadata.generation != old.metadata.generation:
            spec = new.spec.jobTemplate.spec
            found += job_specs.many_indexes(_TEMPLATE, spec)
            found += pod_warnings.of_template(
                spec.template.metadata, spec.template.spec, f"{_TEMPLATE}.template."
            )
        if old is not None and "TZ" in new.spec.schedule:
            instead = f"use timeZone instead, see {_MORE} for more details"
            found.append(f"cannot use TZ or CRON_TZ in spec.spec.schedule, {instead}")
        return found


class CronJobStatusStrategy(StatusStrategy[batch.CronJob]):
    """Upstream checks nothing in it."""

    def validate_update(self, new: batch.CronJob, old: batch.CronJob, env: Environment) -> list[Cause]:
        return []


def _spec(spec: batch.CronJobSpec, old: batch.CronJobSpec | None, options: PodOptions) -> list[Cause]:
    """validateCronJobSpec."""
    if spec.schedule:
        errors = _schedule(spec, zone_in_it=old is not None and "TZ" in old.schedule)
    else:
        errors = [field.required("spec.schedule")]
    errors += field.non_negative("spec.startingDeadlineSeconds", spec.startingDeadlineSeconds)
    if spec.HasField("timeZone") and (
        old is None or not old.HasField("timeZone") or old.timeZone != spec.timeZone
    ):
        errors += _time_zone("spec.timeZone", spec.timeZone)
    at, policy = "spec.concurrencyPolicy", spec.concurrencyPolicy
    if policy not in _POLICIES:
        errors.append(field.not_supported(at, policy, _POLICIES) if policy else field.required(at))
    errors += _job_template(spec.jobTemplate.spec, options)
    for name in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        errors += field.non_negative(f"spec.{name}", getattr(spec, name))
    return errors


def _schedule(spec: batch.CronJobSpec, *, zone_in_it: bool) -> list[Cause]:
    """validateScheduleFormat; `zone_in_it`: the stored schedule has a time zone, so a new one may have it."""
    path, text = "spec.schedule", spec.schedule
    problem = cron_schedule.problem(text)
    errors = [field.invalid(path, text, problem)] if problem else []
    if "TZ" not in text:
        return errors
    if not zone_in_it:
        problem = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        errors.append(field.invalid(path, text, problem))
    elif spec.HasField("timeZone"):
        problem = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        errors.append(field.invalid(path, text, problem))
    return errors


def _time_zone(path: str, name: str) -> list[Cause]:
    if not name:
        return [field.invalid(path, name, "timeZone must be nil or non-empty string")]
    unknown = field.invalid(path, name, f"unknown time zone {name}")
    for part in name.split("/"):
        if part in (".", "..") or part.startswith("-") or not _zone_part.fullmatch(part):
            return [unknown]
    errors: list[Cause] = []
    if name.lower() == "local":
        problem = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        errors.append(field.invalid(path, name, problem))
    return errors if cron_schedule.is_time_zone(name) else [*errors, unknown]


def _job_template(spec: batch.JobSpec, options: PodOptions) -> Iterator[Cause]:
    """ValidateJobTemplateSpec: the selector is made for each Job."""
    yield from job_specs.job_spec(_TEMPLATE, spec, options)
    if spec.HasField("selector"):
        shown = codec.to_json(spec.selector)
        yield field.invalid(f"{_TEMPLATE}.selector", shown, "`selector` will be auto-generated")
    if spec.manualSelector:
        yield field.not_supported(f"{_TEMPLATE}.manualSelector", True, ("nil", "false"))


def _row(obj: batch.CronJob, now: float) -> Cells:
    spec, status = obj.spec, obj.status
    suspended = str(spec.suspend) if spec.HasField("suspend") else UNSET
    zone = spec.timeZone if spec.HasField("timeZone") else NONE
    last = since(status.lastScheduleTime, now) if status.HasField("lastScheduleTime") else NONE
    job = spec.jobTemplate.spec
    selector = shown_label_selector(job.selector) if job.HasField("selector") else NONE
    return [spec.schedule, zone, suspended, len(status.active), last, *containers(job.template), selector]


RULES = KindRules(
    kind=kinds.CRON_JOB,
    strategy=CronJobStrategy(kinds.CRON_JOB, {"status": CronJobStatusStrategy(kinds.CRON_JOB)}),
    columns=Columns(
        _row,
        NAME,
        Column("Schedule", "cronjobspec-batch-v1#schedule"),
        Column("Timezone", "cronjobspec-batch-v1#timeZone"),
        Column("Suspend", "cronjobspec-batch-v1#suspend", "boolean"),
        Column("Active", "cronjobstatus-batch-v1#active", "integer"),
        Column("Last Schedule", "cronjobstatus-batch-v1#lastScheduleTime"),
        AGE,
        *CONTAINERS,
        wide("Selector", "jobspec-batch-v1#selector"),
    ),
)
