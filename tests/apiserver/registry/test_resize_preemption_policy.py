"""Node.spec.podPreemptionPolicy, and nominatedNodeName of a deferred resize (KEP-5836)."""

from __future__ import annotations

import random
from typing import Any

import pytest

from nominee.apiserver.registry.registry import Registry
from nominee.machinery.features.gates import Gates, Version
from nominee.machinery.runtime.clock import FakeClock
from tests.apiserver.registry.memory_storage import MemoryCache, MemoryStorage
from tests.apiserver.rest.asgi import Reply, Rest, front_over

GATE = "InPlacePodVerticalScalingSchedulerPreemption"
V1_37 = Version(1, 37)
OWNERS = [f"example.com/owner-{number}" for number in range(21)]
LIST = "spec.podPreemptionPolicy.disableResizePreemption"


def server(
    storage: MemoryStorage | None = None,
    *,
    gate: bool = True,
    version: Version = V1_37,
    nominates: bool = False,
) -> Rest:
    """Return an API server on the storage; another one on the same storage is its successor."""
    storage, clock = storage or MemoryStorage(), FakeClock()
    gates = Gates("apiserver", version, {GATE: True} if gate else {})
    registry = Registry(
        storage, MemoryCache(storage, version), None, gates=gates, clock=clock, rng=random.Random(1),
        nominates_deferred_resizes=nominates, disabled_admission=("TaintNodesByCondition", "ServiceAccount"),
    )  # fmt: skip
    return front_over(registry, clock, version)


def node(*owners: str, **spec: Any) -> dict[str, Any]:
    document = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": spec}
    if owners:
        spec["podPreemptionPolicy"] = {"disableResizePreemption": list(owners)}
    return document


async def create(rest: Rest, *owners: str) -> Reply:
    return await rest.json("POST", "/api/v1/nodes", node(*owners))


async def replace(rest: Rest, **spec: Any) -> Reply:
    live = (await rest.json("GET", "/api/v1/nodes/n")).document
    live["spec"] = spec
    return await rest.json("PUT", "/api/v1/nodes/n", live)


def policy(*owners: str) -> dict[str, Any]:
    return {"podPreemptionPolicy": {"disableResizePreemption": list(owners)}}


def causes(reply: Reply) -> list[str]:
    assert reply.code == 422, reply.document
    return [f"{cause['field']}: {cause['message']}" for cause in reply.document["details"]["causes"]]


@pytest.mark.parametrize(
    ("owners", "refused"),
    [
        (("policy1", "autoscaling.k8s.io/cluster-autoscaler"), []),
        (OWNERS[:20], []),
        (OWNERS, [f"{LIST}: Too many: 21: must have at most 20 items"]),
        (
            ("duplicate-val", "duplicate-val", "invalid_label!"),
            [
                f'{LIST}[1]: Duplicate value: "duplicate-val"',
                f'{LIST}[2]: Invalid value: "invalid_label!": name part must consist of alphanumeric'
                " characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g."
                " 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
                " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            ],
        ),
        (
            ("Example.com/x",),
            [f'{LIST}[0]: Invalid value: "Example.com/x": prefix part a lowercase RFC 1123'],
        ),
        (
            ("",),
            [f'{LIST}[0]: Invalid value: "": name part must be non-empty', f'{LIST}[0]: Invalid value: ""'],
        ),
    ],
)
async def test_owners_are_label_keys(owners: list[str], refused: list[str]) -> None:
    """KEP-5836, "Node-level Preemption Policy for In-Place Pod Resize": format, maximum, set.

    The cases of a policy are upstream's (declarative validation tests of Node, 1.37).
    """
    reply = await create(server(), *owners)
    if not refused:
        assert reply.code == 201, reply.document
        assert reply.document["spec"] == policy(*owners)
        return
    found = causes(reply)
    assert len(found) == len(refused)
    assert all(map(str.startswith, found, refused)), found


@pytest.mark.parametrize(
    ("gate", "version", "kept"),
    [
        (True, Version(1, 37), True),
        (False, Version(1, 37), False),
        (False, Version(1, 36), False),
        (False, Version(1, 38), True),  # on by default
    ],
)
async def test_a_policy_is_dropped_where_the_gate_is_off(gate: bool, version: Version, kept: bool) -> None:
    """KEP-5836, "Feature Enablement and Rollback": enablement and disablement of the field."""
    rest = server(gate=gate, version=version)
    made = await create(rest, "policy1")
    assert made.code == 201, made.document
    assert ("podPreemptionPolicy" in made.document["spec"]) == kept
    changed = await replace(rest, **policy("policy2"))
    assert changed.code == 200, changed.document
    assert changed.document["spec"] == (policy("policy2") if kept else {})


async def test_a_stored_policy_outlives_the_gate() -> None:
    """KEP-5836, "Upgrade / Downgrade Strategy": disabling the field does not clear what is stored."""
    storage = MemoryStorage()
    assert (await create(server(storage), "policy1")).code == 201
    off = server(storage, gate=False)
    kept = await replace(off, unschedulable=True, **policy("policy1"))
    assert kept.document["spec"] == {**policy("policy1"), "unschedulable": True}
    assert causes(await replace(off, **policy("policy2"))) == ["spec.podPreemptionPolicy: Forbidden"]
    assert (await replace(off)).document["spec"] == {}
    assert (await replace(off, **policy("policy1"))).document["spec"] == {}


async def test_what_is_stored_is_not_validated_again() -> None:
    storage = MemoryStorage()
    unchecked = server(storage)
    assert (await create(unchecked, "policy1")).code == 201
    await _store(storage, [*OWNERS, "invalid_label!"])
    rest = server(storage)
    stored = policy(*OWNERS, "invalid_label!")
    assert (await replace(rest, unschedulable=True, **stored)).code == 200
    fewer = await replace(rest, **policy("invalid_label!", *OWNERS[:19]))
    assert fewer.code == 200, fewer.document
    assert causes(await replace(rest, **policy(*OWNERS))) == [
        f"{LIST}: Too many: 21: must have at most 20 items"
    ]


async def _store(storage: MemoryStorage, owners: list[str]) -> None:
    """Write a policy that no API server would accept."""
    from nominee.machinery.api import kinds
    from nominee.machinery.api.pb import core

    registry = Registry(
        storage, MemoryCache(storage), None, gates=Gates("apiserver", Version(1, 37)), clock=FakeClock(),
        rng=random.Random(1),
    )  # fmt: skip
    store = registry._context.store

    async def mutate(current: Any) -> core.Node:
        new = core.Node()
        new.CopyFrom(current.message)
        new.spec.podPreemptionPolicy.disableResizePreemption[:] = owners
        return new

    await store.update(kinds.NODE, "", "n", mutate)


async def test_owners_apply_their_own_entries() -> None:
    """KEP-5836, "Multiple Owner Support": a set in server-side apply."""
    rest = server()
    assert (await create(rest)).code == 201

    async def apply(manager: str, *owners: str) -> list[str]:
        reply = await rest.json(
            "PATCH", "/api/v1/nodes/n", node(*owners), {"fieldManager": manager},
            content="application/apply-patch+yaml",
        )  # fmt: skip
        assert reply.code == 200, reply.document
        spec = reply.document.get("spec", {})
        return list(spec.get("podPreemptionPolicy", {}).get("disableResizePreemption", ()))

    assert await apply("autoscaler", "ca.io/x") == ["ca.io/x"]
    assert await apply("vpa", "vpa.io/x") == ["ca.io/x", "vpa.io/x"]
    assert await apply("autoscaler") == ["vpa.io/x"]
    assert await apply("vpa") == []


@pytest.mark.parametrize(
    ("nominates", "reason", "nominated", "code"),
    [
        (False, "Deferred", "n1", 422),
        (True, "Deferred", "n1", 200),
        (True, "Deferred", "n2", 422),  # a bound pod cannot move
        (True, "Infeasible", "n1", 422),
        (True, "", "n1", 422),
        (True, "Deferred", "", 200),
    ],
)
async def test_a_bound_pod_is_nominated_for_its_deferred_resize_by_a_switch(
    nominates: bool, reason: str, nominated: str, code: int
) -> None:
    """KEP-5836, "Option 3: Reuse NominatedNodeName": upstream refuses the write."""
    rest = server(nominates=nominates)
    pods = "/api/v1/namespaces/default/pods"
    assert (await rest.json("POST", "/api/v1/namespaces", {"metadata": {"name": "default"}})).code == 201
    pod = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
    }  # fmt: skip
    live = (await rest.json("POST", pods, pod)).document
    conditions = [{"type": "PodResizePending", "status": "True", "reason": reason}] if reason else []
    live["status"] = {"phase": "Running", "conditions": conditions, "nominatedNodeName": nominated}
    reply = await rest.json("PUT", f"{pods}/p/status", live)
    assert reply.code == code, reply.document
    if code == 422:
        text = "status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node"
        assert causes(reply) == [text]
