"""FlowSchemas (kube-apiserver 1.36, registry/flowcontrol and pkg/apis/flowcontrol/validation)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nominee.apiserver.kinds.flowcontrol import bootstrap
from nominee.apiserver.kinds.flowcontrol.shared import check_mandatory, conditions, validate_status
from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.simple_strategy import SimpleStrategy
from nominee.apiserver.printing.cells import NONE
from nominee.apiserver.printing.columns import AGE, NAME, Cells, Column, Columns
from nominee.apiserver.validation import field, names
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import flowcontrol

_ALL = "*"
_PRECEDENCE_MAX = 10_000
_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_SUBJECTS = {"User": "user", "Group": "group", "ServiceAccount": "serviceAccount"}


def _validate(obj: flowcontrol.FlowSchema) -> list[Cause]:
    """Everything but metadata."""
    spec, name = obj.spec, obj.metadata.name
    errors = list(_precedence(spec.matchingPrecedence, name))
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
    errors += check_mandatory(obj, bootstrap.mandatory_schemas())
    return [*errors, *conditions(obj.status.conditions)]


def _precedence(value: int, name: str) -> Iterator[Cause]:
    path = "spec.matchingPrecedence"
    if value <= 0:
        yield field.invalid(path, value, "must be a positive value")
    if value > _PRECEDENCE_MAX:
        yield field.invalid(path, value, f"must not be greater than {_PRECEDENCE_MAX}")
    if value == 1 and name != "exempt":
        yield field.invalid(path, value, "only the schema named 'exempt' may have matchingPrecedence 1")


def _rule(rule: flowcontrol.PolicyRulesWithSubjects, path: str) -> Iterator[Cause]:
    if not rule.subjects:
        yield field.required(f"{path}.subjects", "subjects must contain at least one value")
    for index, subject in enumerate(rule.subjects):
        yield from _subject(subject, f"{path}.subjects[{index}]")
    if not rule.resourceRules and not rule.nonResourceRules:
        yield field.required(path, "at least one of resourceRules and nonResourceRules has to be non-empty")
    for index, each in enumerate(rule.resourceRules):
        yield from _resource_rule(each, f"{path}.resourceRules[{index}]")
    for index, other in enumerate(rule.nonResourceRules):
        yield from _path_rule(other, f"{path}.nonResourceRules[{index}]")


def _subject(subject: flowcontrol.Subject, path: str) -> Iterator[Cause]:
    if subject.kind not in _SUBJECTS:
        yield field.not_supported(f"{path}.kind", subject.kind, sorted(_SUBJECTS))
        return
    own = _SUBJECTS[subject.kind]
    where = f"{path}.{own}"
    if not subject.HasField(own):
        yield field.required(where, f"{own} is required when subject kind is '{subject.kind}'")
    else:
        given = getattr(subject, own)
        if not given.name:
            yield field.required(f"{where}.name")
        if own == "serviceAccount":
            yield from _account(given, where)
    for kind, other in _SUBJECTS.items():
        if other != own and subject.HasField(other):
            text = f"{other} is forbidden when subject kind is not '{kind}'"
            yield field.forbidden(f"{path}.{other}", text)


def _account(account: flowcontrol.ServiceAccountSubject, path: str) -> list[Cause]:
    errors = []
    if account.name and account.name != _ALL:
        problems = names.dns_subdomain(account.name)
        errors += field.problems(f"{path}.name", account.name, problems)
    if not account.namespace:
        return [*errors, field.required(f"{path}.namespace", "must specify namespace for service account")]
    problems = names.dns_label(account.namespace)
    return errors + field.problems(f"{path}.namespace", account.namespace, problems)


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
        return [field.invalid(path, list(values), f"if '*' is present, must not specify other {others}")]
    return []


def _resource_rule(rule: flowcontrol.ResourcePolicyRule, path: str) -> list[Cause]:
    errors = _verbs(rule.verbs, path)
    for name, one, many in (
        ("apiGroups", "api group", "api groups"),
        ("resources", "resource", "resources"),
    ):
        values = getattr(rule, name)
        if not values:
            errors.append(field.required(f"{path}.{name}", f"resource rules must supply at least one {one}"))
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
        return [*errors, field.required(where, "nonResourceURLs must contain at least one value")]
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


def _row(obj: flowcontrol.FlowSchema, now: float) -> Cells:
    spec = obj.spec
    method = spec.distinguisherMethod.type if spec.HasField("distinguisherMethod") else NONE
    dangling = [each.status for each in obj.status.conditions if each.type == "Dangling"]
    level = spec.priorityLevelConfiguration.name
    return [level, spec.matchingPrecedence, method, dangling[-1] if dangling else "?"]


RULES = KindRules(
    kind=kinds.FLOW_SCHEMA,
    strategy=SimpleStrategy(
        kinds.FLOW_SCHEMA,
        _validate,
        status=validate_status,
        status_resets_metadata=True,
        counts_generation=True,
    ),
    columns=Columns(
        _row,
        NAME,
        Column("PriorityLevel", "prioritylevelconfigurationreference-flowcontrol-v1#name"),
        Column("MatchingPrecedence", "flowschemaspec-flowcontrol-v1#matchingPrecedence", "integer"),
        Column("DistinguisherMethod", "flowschemaspec-flowcontrol-v1#distinguisherMethod"),
        AGE,
        Column("MissingPL", "references a broken or non-existent PriorityLevelConfiguration"),
    ),
)
