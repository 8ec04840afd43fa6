"""Flow schemas and priority levels (kube-apiserver 1.36, pkg/apis/flowcontrol/validation)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from apiserver.flow_control import bootstrap
from apiserver.validation import field, names
from machinery.api.errors import Cause
from machinery.api.pb import flowcontrol
from machinery.defaults import flow_control as defaults

_ALL = "*"
_PRECEDENCE_MAX = 10_000
_QUEUES_MAX = 10_000_000
_ENTROPY_BITS_MAX = 60
_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_SUBJECTS = {"User": "user", "Group": "group", "ServiceAccount": "serviceAccount"}


def flow_schema(obj: flowcontrol.FlowSchema) -> list[Cause]:
    """Everything but metadata."""
    spec, name = obj.spec, obj.metadata.name
    errors = _precedence(spec.matchingPrecedence, name)
    kinds = ("ByNamespace", "ByUser")
    if spec.HasField("distinguisherMethod") and spec.distinguisherMethod.type not in kinds:
        path = "spec.distinguisherMethod.type"
        errors.append(field.not_supported(path, spec.distinguisherMethod.type, kinds))
    path, level = "spec.priorityLevelConfiguration.name", spec.priorityLevelConfiguration.name
    if not level:
        errors.append(field.required(path, "must reference a priority level"))
    errors += [field.invalid(path, level, text) for text in names.dns_subdomain(level) if level]
    for index, rule in enumerate(spec.rules):
        errors += _rule(rule, f"spec.rules[{index}]")
    errors += _fixed(obj, bootstrap.mandatory_schemas())
    return errors + conditions(obj.status)


def priority_level(obj: flowcontrol.PriorityLevelConfiguration) -> list[Cause]:
    """Everything but metadata."""
    spec, name = obj.spec, obj.metadata.name
    errors: list[Cause] = []
    if (name == "exempt") != (spec.type == "Exempt"):
        text = "type must be 'Exempt' if and only if name is 'exempt'"
        errors.append(field.invalid("spec.type", spec.type, text))
    if spec.type == "Exempt":
        if spec.HasField("limited"):
            text = "must be nil if the type is not Limited"
            errors.append(field.forbidden("spec.limited", text))
        errors += _lendable(spec.exempt, "spec.exempt")
    elif spec.type == "Limited":
        if spec.HasField("exempt"):
            errors.append(field.forbidden("spec.exempt", "must be nil if the type is Limited"))
        if not spec.HasField("limited"):
            errors.append(field.required("spec.limited", "must not be empty when type is Limited"))
        else:
            errors += _limited(spec.limited, "spec.limited")
    else:
        errors.append(field.not_supported("spec.type", spec.type, ("Exempt", "Limited")))
    if name != "exempt":
        # Of that one the shares may be changed.
        errors += _fixed(obj, bootstrap.mandatory_levels())
    return errors + conditions(obj.status)


def conditions(status: Any) -> list[Cause]:
    """Of a status: each type once."""
    errors: list[Cause] = []
    seen: set[str] = set()
    for index, condition in enumerate(status.conditions):
        path = f"status.conditions[{index}].type"
        if condition.type in seen:
            errors.append(field.duplicate(path, condition.type))
        seen.add(condition.type)
        if not condition.type:
            errors.append(field.required(path, "must not be empty"))
    return errors


def _precedence(value: int, name: str) -> list[Cause]:
    path = "spec.matchingPrecedence"
    errors = []
    if value <= 0:
        errors.append(field.invalid(path, value, "must be a positive value"))
    if value > _PRECEDENCE_MAX:
        errors.append(field.invalid(path, value, f"must not be greater than {_PRECEDENCE_MAX}"))
    if value == 1 and name != "exempt":
        text = "only the schema named 'exempt' may have matchingPrecedence 1"
        errors.append(field.invalid(path, value, text))
    return errors


def _fixed(obj: Any, mandatory: Iterable[Any]) -> list[Cause]:
    """Mandatory objects are as they are."""
    for known in mandatory:
        if known.metadata.name == obj.metadata.name:
            given, wanted = type(obj)(), type(obj)()
            given.spec.CopyFrom(obj.spec)
            wanted.spec.CopyFrom(known.spec)
            if _canonical(given) != _canonical(wanted):
                text = f"spec of '{obj.metadata.name}' must equal the fixed value"
                return [field.invalid("spec", field.OMIT, text)]
    return []


def _canonical(obj: Any) -> Any:
    """Without what says nothing on the wire: a bool or number that is its zero."""
    if isinstance(obj, flowcontrol.PriorityLevelConfiguration):
        defaults.set_shares(obj)
        return obj.spec
    for rule in obj.spec.rules:
        for each in rule.resourceRules:
            each.clusterScope = each.clusterScope
    return obj.spec


def _rule(rule: flowcontrol.PolicyRulesWithSubjects, path: str) -> list[Cause]:
    errors: list[Cause] = []
    if not rule.subjects:
        errors.append(field.required(f"{path}.subjects", "subjects must contain at least one value"))
    for index, subject in enumerate(rule.subjects):
        errors += _subject(subject, f"{path}.subjects[{index}]")
    if not rule.resourceRules and not rule.nonResourceRules:
        text = "at least one of resourceRules and nonResourceRules has to be non-empty"
        errors.append(field.required(path, text))
    for index, each in enumerate(rule.resourceRules):
        errors += _resource_rule(each, f"{path}.resourceRules[{index}]")
    for index, other in enumerate(rule.nonResourceRules):
        errors += _path_rule(other, f"{path}.nonResourceRules[{index}]")
    return errors


def _subject(subject: flowcontrol.Subject, path: str) -> list[Cause]:
    if subject.kind not in _SUBJECTS:
        return [field.not_supported(f"{path}.kind", subject.kind, sorted(_SUBJECTS))]
    own = _SUBJECTS[subject.kind]
    errors: list[Cause] = []
    where = f"{path}.{own}"
    if not subject.HasField(own):
        errors.append(field.required(where, f"{own} is required when subject kind is '{subject.kind}'"))
    else:
        given = getattr(subject, own)
        if not given.name:
            errors.append(field.required(f"{where}.name"))
        if own == "serviceAccount":
            errors += _account(given, where)
    for kind, other in _SUBJECTS.items():
        if other != own and subject.HasField(other):
            text = f"{other} is forbidden when subject kind is not '{kind}'"
            errors.append(field.forbidden(f"{path}.{other}", text))
    return errors


def _account(account: flowcontrol.ServiceAccountSubject, path: str) -> list[Cause]:
    errors = []
    if account.name and account.name != _ALL:
        problems = names.dns_subdomain(account.name)
        errors += [field.invalid(f"{path}.name", account.name, text) for text in problems]
    if not account.namespace:
        text = "must specify namespace for service account"
        return [*errors, field.required(f"{path}.namespace", text)]
    problems = names.dns_label(account.namespace)
    return errors + [field.invalid(f"{path}.namespace", account.namespace, text) for text in problems]


def _verbs(verbs: Sequence[str], path: str) -> list[Cause]:
    if not verbs:
        return [field.required(f"{path}.verbs", "verbs must contain at least one value")]
    if _ALL in verbs:
        return _alone(verbs, f"{path}.verbs", "verbs")
    if not set(verbs) <= set(_VERBS):
        return [field.not_supported(f"{path}.verbs", list(verbs), _VERBS)]
    return []


def _alone(values: Sequence[str], path: str, others: str) -> list[Cause]:
    if _ALL in values and len(values) > 1:
        text = f"if '*' is present, must not specify other {others}"
        return [field.invalid(path, list(values), text)]
    return []


def _resource_rule(rule: flowcontrol.ResourcePolicyRule, path: str) -> list[Cause]:
    errors = _verbs(rule.verbs, path)
    for name, one, many in (
        ("apiGroups", "api group", "api groups"),
        ("resources", "resource", "resources"),
    ):
        values = getattr(rule, name)
        if not values:
            text = f"resource rules must supply at least one {one}"
            errors.append(field.required(f"{path}.{name}", text))
        errors += _alone(values, f"{path}.{name}", many)
    if not rule.namespaces and not rule.clusterScope:
        text = "resource rules that are not cluster scoped must supply at least one namespace"
        errors.append(field.required(f"{path}.namespaces", text))
    elif _ALL in rule.namespaces:
        errors += _alone(rule.namespaces, f"{path}.namespaces", "namespaces")
    else:
        for index, namespace in enumerate(rule.namespaces):
            intro = "each member of this list must be '*' or a DNS-1123 label; "
            errors += [
                field.invalid(f"{path}.namespaces[{index}]", namespace, intro + text)
                for text in names.dns_label(namespace)
            ]
    return errors


def _path_rule(rule: flowcontrol.NonResourcePolicyRule, path: str) -> list[Cause]:
    errors = _verbs(rule.verbs, path)
    where = f"{path}.nonResourceURLs"
    if not rule.nonResourceURLs:
        text = "nonResourceURLs must contain at least one value"
        return [*errors, field.required(where, text)]
    if _ALL in rule.nonResourceURLs:
        return errors + _alone(rule.nonResourceURLs, where, "non-resource URLs")
    for index, url in enumerate(rule.nonResourceURLs):
        problem = _url_problem(url)
        if problem:
            errors.append(field.invalid(f"{where}[{index}]", url, problem))
    return errors


def _url_problem(url: str) -> str:
    if not url:
        return "must not be empty"
    if url == "/":
        return ""
    if not url.startswith("/"):
        return "must start with slash"
    if " " in url:
        return "must not contain white-space"
    if "//" in url:
        return "must not contain double slash"
    star = url.find("*")
    if star >= 0 and (star != len(url) - 1 or not url.endswith("/*")):
        return "wildcard can only do suffix matching"
    return ""


def _lendable(level: Any, path: str) -> list[Cause]:
    errors = []
    if level.nominalConcurrencyShares < 0:
        where = f"{path}.nominalConcurrencyShares"
        errors.append(field.invalid(where, level.nominalConcurrencyShares, "must be a non-negative integer"))
    if not 0 <= level.lendablePercent <= 100:
        text = "must be between 0 and 100, inclusive"
        errors.append(field.invalid(f"{path}.lendablePercent", level.lendablePercent, text))
    return errors


def _limited(level: flowcontrol.LimitedPriorityLevelConfiguration, path: str) -> list[Cause]:
    errors = _lendable(level, path)
    if level.HasField("borrowingLimitPercent") and level.borrowingLimitPercent < 0:
        text = "if specified, must be a non-negative integer"
        errors.append(field.invalid(f"{path}.borrowingLimitPercent", level.borrowingLimitPercent, text))
    response, where = level.limitResponse, f"{path}.limitResponse"
    if response.type == "Reject":
        if response.HasField("queuing"):
            text = "must be nil if limited.limitResponse.type is not Limited"
            errors.append(field.forbidden(f"{where}.queuing", text))
    elif response.type == "Queue":
        if not response.HasField("queuing"):
            text = "must not be empty if limited.limitResponse.type is Limited"
            errors.append(field.required(f"{where}.queuing", text))
        else:
            errors += _queuing(response.queuing, f"{where}.queuing")
    else:
        errors.append(field.not_supported(f"{where}.type", response.type, ("Queue", "Reject")))
    return errors


def _queuing(queuing: flowcontrol.QueuingConfiguration, path: str) -> list[Cause]:
    errors = []
    if queuing.queueLengthLimit <= 0:
        errors.append(field.invalid(f"{path}.queueLengthLimit", queuing.queueLengthLimit, "must be positive"))
    if queuing.queues <= 0:
        errors.append(field.invalid(f"{path}.queues", queuing.queues, "must be positive"))
    elif queuing.queues > _QUEUES_MAX:
        text = f"must not be greater than {_QUEUES_MAX}"
        errors.append(field.invalid(f"{path}.queues", queuing.queues, text))
    size, where = queuing.handSize, f"{path}.handSize"
    if size <= 0:
        errors.append(field.invalid(where, size, "must be positive"))
    elif size > queuing.queues:
        text = f"should not be greater than queues ({queuing.queues})"
        errors.append(field.invalid(where, size, text))
    elif _entropy_bits(queuing.queues, size) > _ENTROPY_BITS_MAX:
        text = (
            f"required entropy bits of deckSize {queuing.queues} and handSize {size} should not be greater"
            f" than {_ENTROPY_BITS_MAX}"
        )
        errors.append(field.invalid(where, size, text))
    return errors


def _entropy_bits(deck: int, size: int) -> int:
    """Of a hash that deals every hand; a hand of more than 15 needs too many anyway."""
    if size > 15:
        return _ENTROPY_BITS_MAX + 1
    return math.ceil(sum(math.log2(deck - dealt) for dealt in range(size)))
