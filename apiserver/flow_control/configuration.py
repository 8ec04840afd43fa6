"""Flow schemas and priority levels as values that are fast to match.

Source: kube-apiserver 1.36, util/flowcontrol/rule.go (matching), apis/flowcontrol (defaults).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nominee.apiserver.kinds.flowcontrol.shared import ALL, BY_NAMESPACE, BY_USER, EXEMPT, QUEUE
from nominee.apiserver.objects.attributes import Attributes
from nominee.apiserver.objects.user import User
from nominee.machinery.api.pb import flowcontrol
from nominee.machinery.runtime.memo import CachedRule

_SERVICE_ACCOUNT = "system:serviceaccount:"


@dataclass(frozen=True, slots=True)
class Queuing:
    """The queues of a level: shuffle sharding deals `hand_size` of `queues` queues to each flow."""

    queues: int
    hand_size: int
    queue_length_limit: int


@dataclass(frozen=True, slots=True)
class Level:
    """A priority level.

    With `queuing` None it rejects requests that do not fit at once; `borrowing_limit_percent` None is no
    limit.
    """

    name: str
    uid: str = ""
    exempt: bool = False
    shares: int = 0
    lendable_percent: int = 0
    borrowing_limit_percent: int | None = None
    queuing: Queuing | None = None


@dataclass(frozen=True, slots=True)
class ResourceRule:
    """The resource requests that a rule matches."""

    verbs: frozenset[str]
    groups: frozenset[str]
    resources: frozenset[str]
    namespaces: frozenset[str]
    cluster_scope: bool

    def matches(self, what: Attributes) -> bool:
        """Report whether the rule matches a resource request."""
        resource = f"{what.resource}/{what.subresource}" if what.subresource else what.resource
        if not (
            _in(what.verb, self.verbs) and _in(what.group, self.groups) and _in(resource, self.resources)
        ):
            return False
        return _in(what.namespace, self.namespaces) if what.namespace else self.cluster_scope


@dataclass(frozen=True, slots=True)
class PathRule:
    """The non-resource requests that a rule matches."""

    verbs: frozenset[str]
    paths: tuple[str, ...]

    def matches(self, what: Attributes) -> bool:
        """Report whether the rule matches a non-resource request."""
        if not _in(what.verb, self.verbs):
            return False
        for path in self.paths:
            if path in (ALL, what.path) or (path.endswith("*") and what.path.startswith(path.rstrip("*"))):
                return True
        return False


@dataclass(frozen=True, slots=True)
class Rule:
    """Subjects, and the requests of theirs that the rule matches."""

    users: frozenset[str]
    groups: frozenset[str]
    # User names of service accounts, or their prefixes: (text, whether it is the whole name).
    accounts: tuple[tuple[str, bool], ...]
    resources: tuple[ResourceRule, ...]
    paths: tuple[PathRule, ...]

    def matches(self, who: User, what: Attributes) -> bool:
        if not self._is_subject(who):
            return False
        rules: Iterable[ResourceRule | PathRule] = self.resources if what.resource else self.paths
        return any(rule.matches(what) for rule in rules)

    def _is_subject(self, who: User) -> bool:
        if ALL in self.groups or not self.groups.isdisjoint(who.groups) or _in(who.name, self.users):
            return True
        return any(
            who.name.startswith(text) if is_prefix else who.name == text for text, is_prefix in self.accounts
        )


@dataclass(frozen=True, slots=True)
class Schema:
    """A flow schema: the matching one with the lowest `precedence` decides, by name among equals."""

    name: str
    uid: str
    level: str
    precedence: int
    distinguisher: str
    rules: tuple[Rule, ...]

    def matches(self, who: User, what: Attributes) -> bool:
        return any(rule.matches(who, what) for rule in self.rules)

    def flow(self, who: User, what: Attributes) -> str:
        """Return the flow's distinguisher within this schema."""
        if self.distinguisher == BY_USER:
            return who.name
        return what.namespace if self.distinguisher == BY_NAMESPACE else ""


@dataclass(frozen=True, slots=True)
class Configuration:
    """The configuration in force: schemas in the order of matching, levels by name."""

    schemas: tuple[Schema, ...]
    levels: dict[str, Level]

    @classmethod
    def of(cls, schemas: Iterable[Schema], levels: Iterable[Level]) -> Configuration:
        """Build the configuration without schemas of missing levels, which upstream ignores as dangling."""
        known = {level.name: level for level in levels}
        ordered = sorted(schemas, key=lambda schema: (schema.precedence, schema.name))
        return cls(tuple(schema for schema in ordered if schema.level in known), known)

    def classify(self, who: User, what: Attributes) -> Schema:
        """Return the schema of a request; the last one (catch-all) when none matches."""
        for schema in self.schemas:
            if schema.matches(who, what):
                return schema
        return self.schemas[-1]


def _in(value: str, allowed: frozenset[str]) -> bool:
    return value in allowed or ALL in allowed


def level_of(message: flowcontrol.PriorityLevelConfiguration) -> Level:
    """Return the value of a PriorityLevelConfiguration."""
    name, uid, spec = message.metadata.name, message.metadata.uid, message.spec
    if spec.type == EXEMPT:
        exempt = spec.exempt
        return Level(
            name,
            uid,
            exempt=True,
            shares=exempt.nominalConcurrencyShares,
            lendable_percent=exempt.lendablePercent,
        )
    limited = spec.limited
    response = limited.limitResponse
    queuing = None
    if response.type == QUEUE:
        asked = response.queuing
        queuing = Queuing(max(asked.queues, 1), max(asked.handSize, 1), max(asked.queueLengthLimit, 1))
    return Level(
        name,
        uid,
        shares=limited.nominalConcurrencyShares,
        lendable_percent=limited.lendablePercent,
        borrowing_limit_percent=(
            limited.borrowingLimitPercent if limited.HasField("borrowingLimitPercent") else None
        ),
        queuing=queuing,
    )


def schema_of(message: flowcontrol.FlowSchema) -> Schema:
    """Return the value of a FlowSchema."""
    spec = message.spec
    return Schema(
        message.metadata.name,
        message.metadata.uid,
        spec.priorityLevelConfiguration.name,
        spec.matchingPrecedence,
        spec.distinguisherMethod.type,
        _rules(spec),
    )


def _rule(rule: flowcontrol.PolicyRulesWithSubjects) -> Rule:
    subjects = rule.subjects
    return Rule(
        frozenset(each.user.name for each in subjects if each.kind == "User"),
        frozenset(each.group.name for each in subjects if each.kind == "Group"),
        tuple(_account(each.serviceAccount) for each in subjects if each.kind == "ServiceAccount"),
        tuple(
            ResourceRule(
                frozenset(each.verbs),
                frozenset(each.apiGroups),
                frozenset(each.resources),
                frozenset(each.namespaces),
                each.clusterScope,
            )
            for each in rule.resourceRules
        ),
        tuple(PathRule(frozenset(each.verbs), tuple(each.nonResourceURLs)) for each in rule.nonResourceRules),
    )


# All schemas are read again at each change of one of them, also of a condition.
_rules = CachedRule[flowcontrol.FlowSchemaSpec, tuple[Rule, ...]](lambda spec: tuple(map(_rule, spec.rules)))


def _account(account: flowcontrol.ServiceAccountSubject) -> tuple[str, bool]:
    prefix = f"{_SERVICE_ACCOUNT}{account.namespace}:"
    return (prefix, True) if account.name == ALL else (prefix + account.name, False)
