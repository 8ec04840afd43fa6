"""Which level a request belongs to under the built-in configuration, and how seats are divided."""

from __future__ import annotations

import pytest

from nominee.apiserver.flow_control import borrowing, seats
from nominee.apiserver.flow_control.borrowing import Wish
from nominee.apiserver.flow_control.configuration import Configuration, level_of, schema_of
from nominee.apiserver.flow_control.retry_after import SECONDS_MAX, RetryAfter
from nominee.apiserver.kinds.flowcontrol import bootstrap
from nominee.apiserver.objects.attributes import Attributes
from nominee.apiserver.objects.user import ADMIN, ANONYMOUS, User

AUTHENTICATED = "system:authenticated"
SCHEDULER = User("system:kube-scheduler", (AUTHENTICATED,))
CONTROLLERS = User("system:kube-controller-manager", (AUTHENTICATED,))
NODE = User("system:node:n1", ("system:nodes", AUTHENTICATED))
JOBS = User("system:serviceaccount:kube-system:job-controller", ("system:serviceaccounts", AUTHENTICATED))
APP = User("system:serviceaccount:default:app", ("system:serviceaccounts", AUTHENTICATED))
ALICE = User("alice", (AUTHENTICATED,))
PODS = Attributes("list", "pods")
LEASE = Attributes("update", "leases", "coordination.k8s.io", namespace="kube-system")


def built_in() -> Configuration:
    return Configuration.of(
        map(schema_of, [*bootstrap.suggested_schemas(), *bootstrap.mandatory_schemas()]),
        map(level_of, [*bootstrap.suggested_levels(), *bootstrap.mandatory_levels()]),
    )


@pytest.mark.parametrize(
    ("user", "asked", "schema", "level"),
    [
        (ADMIN, PODS, "exempt", "exempt"),
        (ADMIN, Attributes("get", path="/version"), "exempt", "exempt"),
        (ANONYMOUS, Attributes("get", path="/healthz"), "probes", "exempt"),
        (ANONYMOUS, Attributes("get", path="/readyz"), "probes", "exempt"),
        (ANONYMOUS, Attributes("post", path="/healthz"), "global-default", "global-default"),
        (ANONYMOUS, Attributes("get", path="/livez/ping"), "global-default", "global-default"),
        (SCHEDULER, LEASE, "system-leader-election", "leader-election"),
        (CONTROLLERS, LEASE, "system-leader-election", "leader-election"),
        (JOBS, LEASE, "system-leader-election", "leader-election"),
        (APP, LEASE, "service-accounts", "workload-low"),
        (SCHEDULER, LEASE._replace(verb="list", namespace=""), "kube-scheduler", "workload-high"),
        (
            SCHEDULER,
            Attributes("create", "pods", subresource="binding", namespace="default"),
            "kube-scheduler",
            "workload-high",
        ),
        (CONTROLLERS, PODS, "kube-controller-manager", "workload-high"),
        (NODE, Attributes("patch", "nodes", subresource="status"), "system-node-high", "node-high"),
        (NODE, LEASE, "system-node-high", "node-high"),
        (
            NODE,
            Attributes("patch", "pods", subresource="status", namespace="default"),
            "system-nodes",
            "system",
        ),
        (JOBS, PODS, "kube-system-service-accounts", "workload-high"),
        (APP, PODS, "service-accounts", "workload-low"),
        (ALICE, PODS, "global-default", "global-default"),
        (User("unmatched"), PODS, "catch-all", "catch-all"),
    ],
)
def test_classification(user: User, asked: Attributes, schema: str, level: str) -> None:
    found = built_in().classify(user, asked)
    assert (found.name, found.level) == (schema, level)


def test_flows_of_a_schema() -> None:
    configuration = built_in()
    default = configuration.classify(ALICE, PODS)
    assert default.flow(ALICE, PODS) == "alice"
    scheduler = configuration.classify(SCHEDULER, PODS)
    assert scheduler.flow(SCHEDULER, PODS._replace(namespace="shop")) == "shop"
    assert configuration.classify(ADMIN, PODS).flow(ADMIN, PODS) == ""


def test_a_schema_without_its_level_is_ignored() -> None:
    stray = bootstrap.suggested_schemas()[-1]
    stray.metadata.name = "a-stray"
    stray.spec.matchingPrecedence = 5
    stray.spec.priorityLevelConfiguration.name = "missing"
    found = Configuration.of(
        [schema_of(stray), *map(schema_of, bootstrap.mandatory_schemas())],
        map(level_of, bootstrap.mandatory_levels()),
    )
    assert found.classify(ALICE, PODS).name == "catch-all"


def test_seats_by_shares() -> None:
    """600 seats by 245 shares, each rounded up (as kube-apiserver's metrics show them)."""
    found = borrowing.bounds(built_in().levels, 600)
    assert {name: one.nominal for name, one in found.items()} == {
        "exempt": 0,
        "catch-all": 13,
        "system": 74,
        "node-high": 98,
        "leader-election": 25,
        "workload-high": 98,
        "workload-low": 245,
        "global-default": 49,
    }
    assert found["workload-low"].lower == 245 - 221
    assert found["system"].lower == 74 - 24
    assert found["catch-all"].lower == 13
    assert found["global-default"].upper == 649


def test_a_busy_level_borrows_and_idle_ones_lend() -> None:
    levels = built_in().levels
    bounded = borrowing.bounds(levels, 600)
    demands = dict.fromkeys(levels, (0.0, 0))
    demands["global-default"] = (400.0, 49)
    limits = borrowing.current_limits(levels, bounded, demands)
    assert limits["global-default"] > 250
    assert all(limits[name] >= bounded[name].lower for name in limits)
    assert abs(sum(limits.values()) - 602) <= len(limits)
    demands["exempt"] = (590.0, 590)
    assert borrowing.current_limits(levels, bounded, demands) == {
        name: bounded[name].lower for name in levels if name != "exempt"
    }


@pytest.mark.parametrize(
    ("total", "wishes", "shares"),
    [
        (10, [Wish(0, 100, 5), Wish(0, 100, 15)], [2.5, 7.5]),
        (10, [Wish(4, 100, 5), Wish(0, 100, 15)], [4, 6]),
        (10, [Wish(0, 3, 15), Wish(0, 100, 5)], [3, 7]),
        (10, [Wish(0, 100, 0), Wish(0, 100, 0)], [5, 5]),
        (10, [Wish(0, 1, 1), Wish(0, 2, 1)], [1, 2]),
    ],
)
def test_division(total: float, wishes: list[Wish], shares: list[float]) -> None:
    assert borrowing.divide(total, wishes) == pytest.approx(shares)


def test_lists_are_as_wide_as_what_they_read() -> None:
    stored = seats.Stored(count=5000, bytes_each=1000)
    assert seats.of_list(stored, limit=0, from_cache=True, selects=False, most=100) == 10
    assert seats.of_list(stored, limit=0, from_cache=False, selects=False, most=100) == 50
    assert seats.of_list(stored, limit=500, from_cache=False, selects=False, most=100) == 5
    assert seats.of_list(stored, limit=500, from_cache=False, selects=True, most=100) == 25
    assert seats.of_list(stored, limit=0, from_cache=False, selects=False, most=8) == 8
    assert seats.of_list(seats.Stored(0, 0), limit=0, from_cache=True, selects=False, most=8) == 1
    assert [seats.seats_max(nominal) for nominal in (0, 13, 49, 245, 6000)] == [1, 2, 8, 37, 100]


def test_retry_after_grows_with_the_number_of_rejections() -> None:
    retry_after = RetryAfter()
    for second in range(100, 110):
        for _ in range(200):
            retry_after.refused(float(second))
    assert retry_after.seconds == 8
    for second in range(110, 400):
        for _ in range(200):
            retry_after.refused(float(second))
    assert retry_after.seconds == SECONDS_MAX
    for second in range(1000, 8000, 200):
        retry_after.refused(float(second))
    assert retry_after.seconds == 1
