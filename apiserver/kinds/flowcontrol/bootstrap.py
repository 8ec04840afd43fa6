"""The flow schemas and priority levels that every cluster begins with.

Mandatory ones are always in force, whatever is stored; suggested ones are created once and may be changed.
Source: kube-apiserver 1.36, apis/flowcontrol/bootstrap (eleven schemas, eight levels).
"""

from __future__ import annotations

from collections.abc import Sequence

from nominee.apiserver.kinds.flowcontrol.shared import (
    ALL,
    BY_NAMESPACE,
    BY_USER,
    EXEMPT,
    LIMITED,
    QUEUE,
    REJECT,
)
from nominee.machinery.api.pb import flowcontrol

AUTO_UPDATE = "apf.kubernetes.io/autoupdate-spec"
MASTERS, NODES = "system:masters", "system:nodes"
_EVERYBODY = ("system:unauthenticated", "system:authenticated")
_CONTROLLERS, _SCHEDULER = "system:kube-controller-manager", "system:kube-scheduler"
_LEASE_VERBS = ("get", "create", "update")


def _level(
    name: str, shares: int, lendable: int, queuing: tuple[int, int, int] | None
) -> flowcontrol.PriorityLevelConfiguration:
    made = flowcontrol.PriorityLevelConfiguration()
    made.metadata.name = name
    made.metadata.annotations[AUTO_UPDATE] = "true"
    if name == "exempt":
        made.spec.type = EXEMPT
        made.spec.exempt.nominalConcurrencyShares = shares
        made.spec.exempt.lendablePercent = lendable
        return made
    made.spec.type = LIMITED
    limited = made.spec.limited
    limited.nominalConcurrencyShares, limited.lendablePercent = shares, lendable
    limited.limitResponse.type = QUEUE if queuing else REJECT
    if queuing:
        asked = limited.limitResponse.queuing
        asked.queues, asked.handSize, asked.queueLengthLimit = queuing
    return made


def mandatory_levels() -> list[flowcontrol.PriorityLevelConfiguration]:
    return [_level("exempt", 0, 0, None), _level("catch-all", 5, 0, None)]


def suggested_levels() -> list[flowcontrol.PriorityLevelConfiguration]:
    """Return the suggested priority levels of a new cluster."""
    return [
        _level("system", 30, 33, (64, 6, 50)),
        _level("node-high", 40, 25, (64, 6, 50)),
        _level("leader-election", 10, 0, (16, 4, 50)),
        _level("workload-high", 40, 50, (128, 6, 50)),
        _level("workload-low", 100, 90, (128, 6, 50)),
        _level("global-default", 20, 50, (128, 6, 50)),
    ]


def _resources(
    rule: flowcontrol.PolicyRulesWithSubjects,
    *,
    verbs: Sequence[str] = (ALL,),
    group: str = ALL,
    resources: Sequence[str] = (ALL,),
    cluster: bool = True,
) -> None:
    rule.resourceRules.add(
        verbs=verbs, apiGroups=[group], resources=resources, namespaces=[ALL], clusterScope=cluster
    )


def _schema(
    name: str,
    level: str,
    precedence: int,
    distinguisher: str,
    *,
    users: Sequence[str] = (),
    groups: Sequence[str] = (),
    system_accounts: bool = False,
    everything: bool = True,
) -> flowcontrol.FlowSchema:
    """A schema of one rule for these subjects; `everything` makes it match all that they ask."""
    made = flowcontrol.FlowSchema()
    made.metadata.name = name
    made.metadata.annotations[AUTO_UPDATE] = "true"
    made.spec.priorityLevelConfiguration.name = level
    made.spec.matchingPrecedence = precedence
    if distinguisher:
        made.spec.distinguisherMethod.type = distinguisher
    rule = made.spec.rules.add()
    for user in users:
        rule.subjects.add(kind="User").user.name = user
    for group in groups:
        rule.subjects.add(kind="Group").group.name = group
    if system_accounts:
        account = rule.subjects.add(kind="ServiceAccount").serviceAccount
        account.namespace, account.name = "kube-system", ALL
    if everything:
        _resources(rule)
        rule.nonResourceRules.add(verbs=[ALL], nonResourceURLs=[ALL])
    return made


def mandatory_schemas() -> list[flowcontrol.FlowSchema]:
    return [
        _schema("exempt", "exempt", 1, "", groups=[MASTERS]),
        _schema("catch-all", "catch-all", 10000, BY_USER, groups=_EVERYBODY),
    ]


def suggested_schemas() -> list[flowcontrol.FlowSchema]:
    """Return the suggested flow schemas of a new cluster."""
    probes = _schema("probes", "exempt", 2, "", groups=_EVERYBODY, everything=False)
    probes.spec.rules[0].nonResourceRules.add(
        verbs=["get"], nonResourceURLs=["/healthz", "/readyz", "/livez"]
    )
    election = _schema(
        "system-leader-election",
        "leader-election",
        100,
        BY_USER,
        users=[_CONTROLLERS, _SCHEDULER],
        system_accounts=True,
        everything=False,
    )
    leases = {"group": "coordination.k8s.io", "resources": ["leases"], "cluster": False}
    _resources(election.spec.rules[0], verbs=_LEASE_VERBS, **leases)  # type: ignore[arg-type]
    nodes = _schema("system-node-high", "node-high", 400, BY_USER, groups=[NODES], everything=False)
    _resources(nodes.spec.rules[0], group="", resources=["nodes", "nodes/status"])
    _resources(nodes.spec.rules[0], **leases)  # type: ignore[arg-type]
    return [
        _schema("system-nodes", "system", 500, BY_USER, groups=[NODES]),
        nodes,
        probes,
        election,
        _schema("kube-controller-manager", "workload-high", 800, BY_NAMESPACE, users=[_CONTROLLERS]),
        _schema("kube-scheduler", "workload-high", 800, BY_NAMESPACE, users=[_SCHEDULER]),
        _schema("kube-system-service-accounts", "workload-high", 900, BY_NAMESPACE, system_accounts=True),
        _schema("service-accounts", "workload-low", 9000, BY_USER, groups=["system:serviceaccounts"]),
        _schema("global-default", "global-default", 9900, BY_USER, groups=_EVERYBODY),
    ]
