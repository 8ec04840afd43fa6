"""Scheduling terms of a pod: tolerations, affinity, spreading, gates (kube-apiserver 1.36)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from nominee.apiserver.validation import field, names
from nominee.apiserver.validation.objects.selectors import label_selector
from nominee.apiserver.validation.pods.options import NUMERIC_OPERATORS, PodOptions
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.names import EMPTY
from nominee.machinery.api.pb import core
from nominee.machinery.api.selectors import parse_int64

TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TOLERATION_OPERATORS = ("Equal", "Exists")
_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")
_DEFAULT_OPTIONS = PodOptions()
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_decimal = re.compile(r"-?[1-9][0-9]*|0", re.ASCII)
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def label_name(path: str, name: str) -> list[Cause]:
    return field.check(path, name, names.qualified_name)


def tolerations(
    path: str, found: Iterable[core.Toleration], options: PodOptions = _DEFAULT_OPTIONS
) -> Iterator[Cause]:
    """Check tolerations of taints."""
    for index, toleration in enumerate(found):
        at = f"{path}[{index}]"
        if toleration.key:
            yield from label_name(f"{at}.key", toleration.key)
        elif toleration.operator != "Exists":
            yield field.invalid(
                f"{at}.operator",
                toleration.operator,
                'operator must be Exists when `key` is empty, which means "match all values and all keys"',
            )
        if toleration.HasField("tolerationSeconds") and toleration.effect != "NoExecute":
            yield field.invalid(
                f"{at}.effect",
                toleration.effect,
                "effect must be 'NoExecute' when `tolerationSeconds` is set",
            )
        if toleration.operator in ("", "Equal"):
            problems = names.label_value(toleration.value)
            if problems:
                yield field.invalid(f"{at}.operator", toleration.value, ";".join(problems))
        elif toleration.operator == "Exists":
            if toleration.value:
                yield field.invalid(
                    f"{at}.operator", toleration.value, "value must be empty when `operator` is 'Exists'"
                )
        elif toleration.operator in NUMERIC_OPERATORS and options.numeric_tolerations:
            yield from _decimal_integer(f"{at}.value", toleration.value)
        else:
            # Upstream names Lt and Gt to those who use them while their gate is off, too.
            numeric = options.numeric_tolerations or toleration.operator in NUMERIC_OPERATORS
            known = _TOLERATION_OPERATORS + (NUMERIC_OPERATORS if numeric else ())
            yield field.not_supported(f"{at}.operator", toleration.operator, known)
        if toleration.effect:
            yield from taint_effect(f"{at}.effect", toleration.effect, allow_empty=True)


def _decimal_integer(path: str, text: str) -> list[Cause]:
    """An int64 without a plus sign or leading zeros, which two readers might read differently."""
    if not text:
        return [field.invalid(path, text, EMPTY)]
    if not _decimal.fullmatch(text):
        return [field.invalid(path, text, "must be a valid decimal integer in canonical form")]
    if parse_int64(text) is None:
        return [field.invalid(path, text, "value must fit in a 64-bit integer")]
    return []


def taint_effect(path: str, effect: str, *, allow_empty: bool) -> list[Cause]:
    if effect in TAINT_EFFECTS or (allow_empty and not effect):
        return []
    return [field.not_supported(path, effect, TAINT_EFFECTS) if effect else field.required(path)]


def affinity(path: str, found: core.Affinity) -> Iterator[Cause]:
    """Check the three kinds of affinity."""
    if found.HasField("nodeAffinity"):
        node, at = found.nodeAffinity, f"{path}.nodeAffinity"
        if node.HasField("requiredDuringSchedulingIgnoredDuringExecution"):
            yield from node_selector(f"{at}.{_REQUIRED}", node.requiredDuringSchedulingIgnoredDuringExecution)
        for index, preferred in enumerate(node.preferredDuringSchedulingIgnoredDuringExecution):
            where = f"{at}.{_PREFERRED}[{index}]"
            if not 1 <= preferred.weight <= 100:
                yield field.invalid(f"{where}.weight", preferred.weight, "must be in the range 1-100")
            yield from _node_term(f"{where}.preference", preferred.preference, values=False)
    for name in ("podAffinity", "podAntiAffinity"):
        if not found.HasField(name):
            continue
        pods, at = getattr(found, name), f"{path}.{name}"
        for index, term in enumerate(pods.requiredDuringSchedulingIgnoredDuringExecution):
            yield from _pod_term(f"{at}.{_REQUIRED}[{index}]", term)
        for index, weighted in enumerate(pods.preferredDuringSchedulingIgnoredDuringExecution):
            where = f"{at}.{_PREFERRED}[{index}]"
            if not 1 <= weighted.weight <= 100:
                yield field.invalid(f"{where}.weight", weighted.weight, "must be in the range 1-100")
            yield from _pod_term(f"{where}.podAffinityTerm", weighted.podAffinityTerm)


def node_selector(path: str, selector: core.NodeSelector) -> Iterator[Cause]:
    """Check the terms of a node selector; there must be one."""
    terms = selector.nodeSelectorTerms
    if not terms:
        yield field.required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
        return
    for index, term in enumerate(terms):
        yield from _node_term(f"{path}.nodeSelectorTerms[{index}]", term)


def _node_term(path: str, term: core.NodeSelectorTerm, *, values: bool = True) -> Iterator[Cause]:
    """`values`: whether they must be label values, which upstream forgives in preferences."""
    for index, expression in enumerate(term.matchExpressions):
        yield from _node_expression(f"{path}.matchExpressions[{index}]", expression, check=values)
    for index, expression in enumerate(term.matchFields):
        yield from _node_field(f"{path}.matchFields[{index}]", expression)


def _node_expression(path: str, expression: core.NodeSelectorRequirement, *, check: bool) -> Iterator[Cause]:
    values = expression.values
    match expression.operator:
        case "In" | "NotIn":
            if not values:
                yield field.required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        case "Exists" | "DoesNotExist":
            if values:
                yield field.forbidden(
                    f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                )
        case "Gt" | "Lt":
            if len(values) != 1:
                yield field.required(
                    f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'"
                )
        case other:
            yield field.invalid(f"{path}.operator", other, "not a valid selector operator")
    yield from label_name(f"{path}.key", expression.key)
    for index, value in enumerate(values if check else ()):
        yield from field.check(f"{path}.values[{index}]", value, names.label_value)


def _node_field(path: str, expression: core.NodeSelectorRequirement) -> Iterator[Cause]:
    if expression.operator not in ("In", "NotIn"):
        yield field.invalid(f"{path}.operator", expression.operator, "not a valid selector operator")
    elif len(expression.values) != 1:
        yield field.required(
            f"{path}.values",
            "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
        )
    if expression.key != "metadata.name":
        yield field.invalid(f"{path}.key", expression.key, "not a valid field selector key")
    else:
        for index, value in enumerate(expression.values):
            yield from field.check(f"{path}.values[{index}]", value, names.dns_subdomain)


def _pod_term(path: str, term: core.PodAffinityTerm) -> Iterator[Cause]:
    if term.HasField("labelSelector"):
        yield from label_selector(f"{path}.labelSelector", term.labelSelector)
    if term.HasField("namespaceSelector"):
        yield from label_selector(f"{path}.namespaceSelector", term.namespaceSelector)
    for namespace in term.namespaces:
        yield from field.check(f"{path}.namespace", namespace, names.dns_label)
    yield from _label_keys(path, term)
    if not term.topologyKey:
        yield field.required(f"{path}.topologyKey", "can not be empty")
    yield from label_name(f"{path}.topologyKey", term.topologyKey)


def _label_keys(path: str, term: core.PodAffinityTerm) -> Iterator[Cause]:
    """matchLabelKeys and mismatchLabelKeys, which are about the selector beside them."""
    for name, keys in (
        ("matchLabelKeys", term.matchLabelKeys),
        ("mismatchLabelKeys", term.mismatchLabelKeys),
    ):
        if keys and not term.HasField("labelSelector"):
            yield field.forbidden(f"{path}.{name}", "must not be specified when labelSelector is not set")
        elif keys:
            for index, key in enumerate(keys):
                yield from label_name(f"{path}.{name}[{index}]", key)
    places = {key: index for index, key in enumerate(term.matchLabelKeys)}
    selected = set(term.labelSelector.matchLabels)
    for expression in term.labelSelector.matchExpressions:
        # What the keys stand for is in the selector already; another one is the client's own.
        if expression.key in places and expression.key in selected:
            problem = "exists in both matchLabelKeys and labelSelector"
            yield field.invalid(f"{path}[{places[expression.key]}]", expression.key, problem)
        selected.add(expression.key)
    for index, key in enumerate(term.matchLabelKeys):
        if key in term.mismatchLabelKeys:
            problem = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield field.invalid(f"{path}.matchLabelKeys[{index}]", key, problem)


def _spread_keys(path: str, constraint: core.TopologySpreadConstraint) -> Iterator[Cause]:
    if not constraint.HasField("labelSelector"):
        yield field.forbidden(path, "must not be specified when labelSelector is not set")
    found = [expression.key for expression in constraint.labelSelector.matchExpressions]
    own = set(constraint.labelSelector.matchLabels)
    for index, key in enumerate(constraint.matchLabelKeys):
        yield from label_name(f"{path}[{index}]", key)
        # One match is the requirement that the strategy has added for the key.
        if key in own or found.count(key) > 1:
            yield field.invalid(f"{path}[{index}]", key, "exists in both matchLabelKeys and labelSelector")


def spread(path: str, constraints: Sequence[core.TopologySpreadConstraint]) -> Iterator[Cause]:
    """Check topology spread constraints."""
    pairs = [(constraint.topologyKey, constraint.whenUnsatisfiable) for constraint in constraints]
    for index, constraint in enumerate(constraints):
        at = f"{path}[{index}]"
        if constraint.maxSkew <= 0:
            yield field.invalid(f"{at}.maxSkew", constraint.maxSkew, "must be greater than zero")
        if not constraint.topologyKey:
            yield field.required(f"{at}.topologyKey", "can not be empty")
        policy = constraint.whenUnsatisfiable
        yield from field.one_of(f"{at}.whenUnsatisfiable", policy, _UNSATISFIABLE)
        pair = pairs[index]
        if pair in pairs[index + 1 :]:
            yield field.duplicate(f"{at}.{{topologyKey, whenUnsatisfiable}}", f"{{{pair[0]}, {pair[1]}}}")
        if constraint.HasField("minDomains"):
            if constraint.minDomains <= 0:
                yield field.invalid(f"{at}.minDomains", constraint.minDomains, "must be greater than zero")
            if policy != "DoNotSchedule":
                yield field.invalid(
                    f"{at}.minDomains",
                    constraint.minDomains,
                    f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {policy}",
                )
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            value = getattr(constraint, name)
            if constraint.HasField(name) and value not in ("Honor", "Ignore"):
                yield field.not_supported(f"{at}.{name}", value, ("Honor", "Ignore"))
        if constraint.matchLabelKeys:
            yield from _spread_keys(f"{at}.matchLabelKeys", constraint)
        if constraint.HasField("labelSelector"):
            yield from label_selector(f"{at}.labelSelector", constraint.labelSelector)


def gates(path: str, found: Sequence[core.PodSchedulingGate]) -> Iterator[Cause]:
    """Check scheduling gates: qualified names, each once."""
    seen: set[str] = set()
    for index, gate in enumerate(found):
        at = f"{path}[{index}]"
        yield from field.check(at, gate.name, names.qualified_name)
        yield from field.unique(at, gate.name, seen)
