"""DaemonSets (kube-apiserver 1.36, pkg/apis/apps/validation and pkg/registry/apps/daemonset)."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.apiserver.kinds.apps.replicas import collision_count
from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.strategy import Environment, StatusStrategy
from nominee.apiserver.kinds.template_strategy import TemplateStrategy
from nominee.apiserver.printing.cells import containers, labels
from nominee.apiserver.printing.columns import AGE, CONTAINERS, NAME, Cells, Column, Columns, wide
from nominee.apiserver.validation import field
from nominee.apiserver.validation.go_dump import dump
from nominee.apiserver.validation.pods import templates
from nominee.apiserver.validation.pods.options import PodOptions
from nominee.apiserver.validation.values.int_or_percent import int_or_percent, is_zero, shown_value
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import apps
from nominee.machinery.api.selectors import parse_int64, shown_label_selector
from nominee.machinery.wire import codec

_TYPES = ("RollingUpdate", "OnDelete")
_COUNTS = (
    "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady",
    "observedGeneration", "updatedNumberScheduled", "numberAvailable", "numberUnavailable",
)  # fmt: skip
_GENERATION = "deprecated.daemonset.template.generation"


class DaemonSetStrategy(TemplateStrategy[apps.DaemonSet]):
    """The main resource. The template's generation is an annotation in apps/v1."""

    def prepare_for_create(self, new: apps.DaemonSet, env: Environment) -> None:
        super().prepare_for_create(new, env)
        given = new.metadata.annotations.get(_GENERATION, "")
        number = parse_int64(given) or 0
        new.metadata.annotations[_GENERATION] = str(max(number, 1))

    def prepare_for_update(self, new: apps.DaemonSet, old: apps.DaemonSet, env: Environment) -> None:
        super().prepare_for_update(new, old, env)
        before = old.metadata.annotations.get(_GENERATION, "1")
        number = parse_int64(before) or 1
        if new.spec.template != old.spec.template:
            number += 1
        new.metadata.annotations[_GENERATION] = str(number)


def _validate(obj: apps.DaemonSet, old: apps.DaemonSet | None, options: PodOptions) -> Iterator[Cause]:
    spec = obj.spec
    if old is not None and spec.selector != old.spec.selector:
        yield field.invalid("spec.selector", codec.to_json(spec.selector), field.IMMUTABLE)
    yield from templates.check_selector(
        spec.selector if spec.HasField("selector") else None,
        spec.template.metadata.labels,
        "empty selector is invalid for daemonset",
        required=False,
    )
    yield from templates.pod_template("spec.template", spec.template, options)
    yield from templates.always_restarts("spec.template", spec.template, "DaemonSet")
    yield from field.non_negative("spec.minReadySeconds", spec.minReadySeconds)
    yield from _strategy("spec.updateStrategy", spec.updateStrategy)
    yield from field.non_negative("spec.revisionHistoryLimit", spec.revisionHistoryLimit)


def _strategy(path: str, strategy: apps.DaemonSetUpdateStrategy) -> list[Cause]:
    if strategy.type == "OnDelete":
        return []
    if strategy.type != "RollingUpdate":
        return [field.not_supported(path, dump(strategy), _TYPES)]
    if not strategy.HasField("rollingUpdate"):
        return [field.required(f"{path}.rollingUpdate")]
    rolling, at = strategy.rollingUpdate, f"{path}.rollingUpdate"
    errors = int_or_percent(f"{at}.maxUnavailable", rolling.maxUnavailable)
    errors += int_or_percent(f"{at}.maxSurge", rolling.maxSurge)
    fewer, more = not is_zero(rolling.maxUnavailable), not is_zero(rolling.maxSurge)
    if fewer and more:
        problem = "may not be set when maxUnavailable is non-zero"
        errors.append(field.invalid(f"{at}.maxSurge", shown_value(rolling.maxSurge), problem))
    elif not fewer and not more:
        problem = "cannot be 0 when maxSurge is 0"
        errors.append(field.invalid(f"{at}.maxUnavailable", shown_value(rolling.maxUnavailable), problem))
    return errors


def _validate_status(new: apps.DaemonSet, old: apps.DaemonSet) -> Iterator[Cause]:
    for name in _COUNTS:
        yield from field.non_negative(f"status.{name}", getattr(new.status, name))
    yield from collision_count(new.status, old.status)


def _row(obj: apps.DaemonSet, now: float) -> Cells:
    status = obj.status
    counts = [
        status.desiredNumberScheduled,
        status.currentNumberScheduled,
        status.numberReady,
        status.updatedNumberScheduled,
        status.numberAvailable,
    ]
    nodes = labels(obj.spec.template.spec.nodeSelector)
    return [*counts, nodes, *containers(obj.spec.template), shown_label_selector(obj.spec.selector)]


RULES = KindRules(
    kind=kinds.DAEMON_SET,
    strategy=DaemonSetStrategy(
        kinds.DAEMON_SET, _validate, {"status": StatusStrategy(kinds.DAEMON_SET, _validate_status)}
    ),
    columns=Columns(
        _row,
        NAME,
        Column("Desired", "daemonsetstatus-apps-v1#desiredNumberScheduled", "integer"),
        Column("Current", "daemonsetstatus-apps-v1#currentNumberScheduled", "integer"),
        Column("Ready", "daemonsetstatus-apps-v1#numberReady", "integer"),
        Column("Up-to-date", "daemonsetstatus-apps-v1#updatedNumberScheduled", "integer"),
        Column("Available", "daemonsetstatus-apps-v1#numberAvailable", "integer"),
        Column("Node Selector", "podspec-v1#nodeSelector"),
        AGE,
        *CONTAINERS,
        wide("Selector", "daemonsetspec-apps-v1#selector"),
    ),
)
