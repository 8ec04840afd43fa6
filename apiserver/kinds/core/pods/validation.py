"""Validation of pods: on create, and of updates of the main resource (kube-apiserver 1.36)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nominee.apiserver.validation import field, names, scheduling_terms
from nominee.apiserver.validation.equality import same
from nominee.apiserver.validation.go_dump import dump
from nominee.apiserver.validation.objects import metadata
from nominee.apiserver.validation.pods import annotations as pod_annotations
from nominee.apiserver.validation.pods import containers
from nominee.apiserver.validation.pods.options import PodOptions
from nominee.apiserver.validation.pods.spec import INT32_MAX, in_range, pod_spec
from nominee.apiserver.validation.spec_diff import diff
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.memo import CachedRule

_DEFAULT_OPTIONS = PodOptions()
UPDATABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def pod(obj: core.Pod, old: core.Pod | None = None, options: PodOptions = _DEFAULT_OPTIONS) -> list[Cause]:
    """Check the rules for every write of a pod."""
    errors = metadata.object_meta(obj.metadata, namespaced=True, name_rule=names.dns_subdomain)
    errors += pod_annotations.pod_annotations(obj, old)
    # Only volumes have to do with the name of the pod that they are of.
    if obj.spec.volumes:
        return [*errors, *_spec(obj.spec, obj.metadata.name, options)]
    errors += _spec_without_volumes[options](obj.spec)
    return errors


def _spec(spec: core.PodSpec, pod_name: str, options: PodOptions) -> Iterator[Cause]:
    yield from pod_spec("spec", spec, options, in_template=False, pod=pod_name)
    if not spec.serviceAccountName and spec.volumes:
        yield from _tokens(spec)
    for name in ("containers", "initContainers"):
        for index, container in enumerate(getattr(spec, name)):
            yield from containers.untrimmed_image(f"spec.{name}[{index}]", container)


def _cached_spec(options: PodOptions) -> CachedRule[core.PodSpec, tuple[Cause, ...]]:
    return CachedRule(lambda spec: tuple(_spec(spec, "", options)))


_spec_without_volumes = {options: _cached_spec(options) for options in map(PodOptions, (False, True))}


def _tokens(spec: core.PodSpec) -> list[Cause]:
    """Every token must belong to a service account."""
    problem = "must not be specified when serviceAccountName is not set"
    return [
        field.forbidden(f"spec.volumes[{index}].projected.sources[{number}].serviceAccountToken", problem)
        for index, volume in enumerate(spec.volumes)
        for number, source in enumerate(volume.volumeSource.projected.sources)
        if source.HasField("serviceAccountToken")
    ]


def create(obj: core.Pod, options: PodOptions = _DEFAULT_OPTIONS) -> list[Cause]:
    """Check a new pod (ValidatePodCreate)."""
    errors = pod(obj, options=options)
    if obj.spec.ephemeralContainers:
        errors.append(field.forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if obj.spec.schedulingGates and obj.spec.nodeName:
        errors.append(
            field.forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")
        )
    return [*errors, *pod_annotations.against_fields("spec", obj.metadata.annotations, obj.spec)]


def update(new: core.Pod, old: core.Pod, options: PodOptions = _DEFAULT_OPTIONS) -> list[Cause]:
    """Check the changes in an update of the pod (ValidatePodUpdate)."""
    errors = metadata.object_meta_update(new.metadata, old.metadata)
    errors += pod(new, old, options)
    errors += pod_annotations.update(new, old)
    for name in ("containers", "initContainers"):
        problems, stop = _images(f"spec.{name}", getattr(new.spec, name), getattr(old.spec, name))
        errors += problems
        if stop:
            return errors
    deadline, stop = _deadline(new.spec, old.spec)
    errors += deadline
    if stop:
        return errors
    errors += _tolerations(new.spec.tolerations, old.spec.tolerations, options)
    errors += _gates(new.spec.schedulingGates, old.spec.schedulingGates)
    if same(new.spec, old.spec):
        return errors
    munged = copy_of(new.spec)
    errors += _munge(munged, old.spec)
    if not same(munged, old.spec):
        errors.append(field.forbidden("spec", f"{UPDATABLE}\n{diff(old.spec, munged)}"))
    return errors


def _images(
    path: str, new: Sequence[core.Container], old: Sequence[core.Container]
) -> tuple[list[Cause], bool]:
    if len(new) != len(old):
        return [field.forbidden(path, "pod updates may not add or remove containers")], True
    errors: list[Cause] = []
    for index, container in enumerate(new):
        at = f"{path}[{index}].image"
        if not container.image:
            errors.append(field.required(at))
        elif container.image != container.image.strip():
            errors.append(field.invalid(at, container.image, "must not have leading or trailing whitespace"))
    return errors, False


def _deadline(new: core.PodSpec, old: core.PodSpec) -> tuple[list[Cause], bool]:
    """From none to some, or from some to less."""
    path = "spec.activeDeadlineSeconds"
    if new.HasField("activeDeadlineSeconds"):
        errors = in_range(path, new.activeDeadlineSeconds, 0, INT32_MAX)
        if errors:
            return errors, True
        if old.HasField("activeDeadlineSeconds") and old.activeDeadlineSeconds < new.activeDeadlineSeconds:
            problem = "must be less than or equal to previous value"
            return [field.invalid(path, new.activeDeadlineSeconds, problem)], True
    elif old.HasField("activeDeadlineSeconds"):
        return [field.invalid(path, None, "must not update from a positive integer to nil value")], False
    return [], False


def _tolerations(
    new: Sequence[core.Toleration], old: Sequence[core.Toleration], options: PodOptions
) -> list[Cause]:
    if new == old:
        return []
    for toleration in old:
        if not any(_same_but_seconds(toleration, candidate) for candidate in new):
            return [
                field.forbidden(
                    "spec.tolerations", "existing toleration can not be modified except its tolerationSeconds"
                )
            ]
    return list(scheduling_terms.tolerations("spec.tolerations", new, options))


def _same_but_seconds(one: core.Toleration, other: core.Toleration) -> bool:
    return (one.key, one.operator, one.value, one.effect) == (
        other.key,
        other.operator,
        other.value,
        other.effect,
    )


def _gates(new: Sequence[core.PodSchedulingGate], old: Sequence[core.PodSchedulingGate]) -> list[Cause]:
    had = {gate.name for gate in old}
    return [
        field.forbidden(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.name}'",
        )
        for index, gate in enumerate(new)
        if gate.name not in had
    ]


def _munge(spec: core.PodSpec, old: core.PodSpec) -> Iterator[Cause]:
    """Reset the mutable fields in `spec` to their old values, so that the rest must be equal."""
    for name in ("containers", "initContainers"):
        for container, before in zip(getattr(spec, name), getattr(old, name), strict=True):
            container.image = before.image
    spec.ClearField("activeDeadlineSeconds")
    if old.HasField("activeDeadlineSeconds"):
        spec.activeDeadlineSeconds = old.activeDeadlineSeconds
    spec.ClearField("tolerations")
    spec.tolerations.MergeFrom(old.tolerations)
    spec.ClearField("schedulingGates")
    spec.schedulingGates.MergeFrom(old.schedulingGates)
    if old.terminationGracePeriodSeconds < 0 and spec.terminationGracePeriodSeconds == 1:
        spec.terminationGracePeriodSeconds = old.terminationGracePeriodSeconds
    if old.schedulingGates:
        yield from _gated(spec, old)


def _gated(spec: core.PodSpec, old: core.PodSpec) -> Iterator[Cause]:
    """A gated pod may become more restricted: more of a node selector, more of the required affinity."""
    if spec.nodeSelector != old.nodeSelector:
        if any(spec.nodeSelector.get(key) != value for key, value in old.nodeSelector.items()):
            yield field.invalid(
                "spec.nodeSelector",
                dict(sorted(spec.nodeSelector.items())),
                "only additions to spec.nodeSelector are allowed (no mutations or deletions)",
            )
        spec.nodeSelector.clear()
        spec.nodeSelector.update(old.nodeSelector)
    if spec.affinity.nodeAffinity != old.affinity.nodeAffinity:
        yield from _gated_affinity(spec.affinity.nodeAffinity, old.affinity.nodeAffinity)
        if old.HasField("affinity"):
            spec.affinity.ClearField("nodeAffinity")
            if old.affinity.HasField("nodeAffinity"):
                spec.affinity.nodeAffinity.CopyFrom(old.affinity.nodeAffinity)
        elif not spec.affinity.HasField("podAffinity") and not spec.affinity.HasField("podAntiAffinity"):
            spec.ClearField("affinity")
        else:
            spec.affinity.ClearField("nodeAffinity")


def _gated_affinity(new: core.NodeAffinity, old: core.NodeAffinity) -> list[Cause]:
    path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    if not old.HasField("requiredDuringSchedulingIgnoredDuringExecution"):
        return []
    terms = new.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms
    before = old.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms
    if before and len(terms) != len(before):
        return [
            field.invalid(
                f"{path}.nodeSelectorTerms",
                [dump(term) for term in terms] or None,
                "no additions/deletions to non-empty NodeSelectorTerms list are allowed",
            )
        ]
    errors: list[Cause] = []
    for index, (term, was) in enumerate(zip(terms, before, strict=False)):
        empty = not was.matchExpressions and not was.matchFields
        kept = list(term.matchExpressions)[: len(was.matchExpressions)] == list(was.matchExpressions)
        kept = kept and list(term.matchFields)[: len(was.matchFields)] == list(was.matchFields)
        if not kept or (empty and (term.matchExpressions or term.matchFields)):
            errors.append(
                field.invalid(
                    f"{path}.nodeSelectorTerms[{index}]",
                    dump(term),
                    "only additions are allowed (no mutations or deletions)",
                )
            )
    return errors
