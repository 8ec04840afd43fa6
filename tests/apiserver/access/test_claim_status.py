"""DRAResourceClaimGranularStatusAuthorization: which part of a claim's status needs which permission.

Cases are those of upstream's own tests (registry/resource, 1.36).
"""

from __future__ import annotations

from typing import Any

import pytest

from nominee.apiserver.access.authorizer import Union
from nominee.apiserver.access.rbac.authorizer import RBAC
from nominee.apiserver.admission.interface import AdmissionRequest
from nominee.apiserver.admission.permissions.claim_status_authorization import (
    ClaimStatusAuthorization,
    changed_drivers,
    node_of,
)
from nominee.apiserver.objects.attributes import Attributes, Origin
from nominee.apiserver.objects.user import User
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import devices
from nominee.machinery.wire import codec
from tests.apiserver.access.fakes import Objects
from tests.apiserver.access.test_rbac import bind, role

GROUP = "resource.k8s.io"
PLAIN = User("system:serviceaccount:default:driver", ("system:authenticated",))
ON_NODE = User(PLAIN.name, PLAIN.groups, "", (("authentication.kubernetes.io/node-name", ("n1",)),))
SOMEONE = User("jane", ("system:authenticated",), "", ON_NODE.extra)
NEEDS_BINDING = (
    "status: Forbidden: changing status.allocation or status.reservedFor requires"
    ' resource="resourceclaims/binding", verb="update" permission: resourceclaims.resource.k8s.io is'
    ' forbidden: User "{user}" cannot update resource "resourceclaims/binding" in API group'
    ' "resource.k8s.io" at the cluster scope'
)
NEEDS_DRIVER = (
    'status.devices: Forbidden: changing status.devices requires resource="resourceclaims/driver",'
    ' verb="[{verbs}]" permission: resourceclaims.resource.k8s.io "{driver}" is forbidden: User "{user}"'
    ' cannot {verb} resource "resourceclaims/driver" in API group "resource.k8s.io" in the namespace'
    ' "default"'
)


def allocation(*nodes: str, **term: Any) -> dict[str, Any]:
    where = [{"key": "metadata.name", "operator": "In", "values": list(nodes)}]
    terms = [{"matchFields": where, **term}]
    return {"nodeSelector": {"nodeSelectorTerms": terms}} if nodes else {}


def device(name: str, driver: str = "d.example.com", **more: Any) -> dict[str, Any]:
    return {"driver": driver, "pool": "p", "device": name, **more}


def claim(**status: Any) -> devices.ResourceClaim:
    document = {"metadata": {"name": "c", "namespace": "default"}, "status": status}
    return codec.from_json(devices.ResourceClaim, document)


@pytest.fixture
def objects() -> Objects:
    return Objects()


async def write(
    objects: Objects,
    new: devices.ResourceClaim,
    old: devices.ResourceClaim,
    *,
    user: User = PLAIN,
    verb: str = "update",
) -> str:
    """The problem of a write, "" for none."""
    origin = Origin(user, Attributes(verb, "resourceclaims", GROUP, "v1", "status", "default", "c"))
    plugin = ClaimStatusAuthorization(Union([RBAC.over(objects)]))
    request = AdmissionRequest(
        "UPDATE", kinds.RESOURCE_CLAIM, "default", "c", "status", new, old, origin=origin
    )
    assert plugin.handles(request.kind, request.operation, request.subresource)
    try:
        await plugin.validate(request, objects.lookup)
    except StatusError as error:
        if (error.code, error.reason) != (422, "Invalid"):
            raise
        return error.message.removeprefix('ResourceClaim.resource.k8s.io "c" is invalid: ')
    return ""


def allow(
    objects: Objects, resource: str, *verbs: str, names: tuple[str, ...] = (), namespace: str = ""
) -> None:
    rule = {"apiGroups": [GROUP], "resources": [resource], "verbs": verbs, "resourceNames": names}
    name = f"{resource}-{len(names)}-{'-'.join(verbs)}".replace("/", ".")
    role(objects, name, rule, namespace=namespace)
    for subject in ("ServiceAccount:default:driver", "User:jane"):
        bind(objects, name, subject, namespace, "Role" if namespace else "ClusterRole")


RESERVED = [{"resource": "pods", "name": "p", "uid": "u"}]


@pytest.mark.parametrize(
    "change", [{"allocation": allocation("n1")}, {"allocation": {}}, {"reservedFor": RESERVED}], ids=str
)
async def test_allocation_and_reservations_need_binding(objects: Objects, change: dict[str, Any]) -> None:
    needed = NEEDS_BINDING.format(user=PLAIN.name)
    assert await write(objects, claim(**change), claim()) == needed
    assert await write(objects, claim(), claim(**change)) == needed
    allow(objects, "resourceclaims/binding", "patch")
    assert await write(objects, claim(**change), claim()) == needed
    assert await write(objects, claim(**change), claim(), verb="patch") == ""
    # In one namespace it is not enough: other claims may want the same devices.
    allow(objects, "resourceclaims/binding", "update", namespace="default")
    assert await write(objects, claim(**change), claim()) == needed
    allow(objects, "resourceclaims/binding", "update")
    assert await write(objects, claim(**change), claim()) == ""


async def test_what_does_not_change_needs_nothing(objects: Objects) -> None:
    same = claim(allocation=allocation("n1"), reservedFor=RESERVED, devices=[device("a")])
    assert await write(objects, same, same) == ""


async def test_devices_on_the_accounts_own_node(objects: Objects) -> None:
    old, new = (claim(allocation=allocation("n1"), devices=found) for found in ([], [device("a")]))
    verbs = "associated-node:update arbitrary-node:update"
    needed = NEEDS_DRIVER.format(
        verbs=verbs, verb="associated-node:update", driver="d.example.com", user=PLAIN.name
    )
    assert await write(objects, new, old, user=ON_NODE) == needed
    allow(objects, "resourceclaims/driver", "associated-node:update", names=("other.example.com",))
    assert await write(objects, new, old, user=ON_NODE) == needed
    allow(objects, "resourceclaims/driver", "associated-node:update", namespace="default")
    assert await write(objects, new, old, user=ON_NODE) == ""
    assert "associated-node:patch" in await write(objects, new, old, user=ON_NODE, verb="patch")


@pytest.mark.parametrize("user", [PLAIN, SOMEONE], ids=["no node", "no service account"])
async def test_devices_of_any_node(objects: Objects, user: User) -> None:
    old, new = (claim(allocation=allocation("n1"), devices=found) for found in ([], [device("a")]))
    allow(objects, "resourceclaims/driver", "associated-node:update")
    needed = NEEDS_DRIVER.format(
        verbs="arbitrary-node:update", verb="arbitrary-node:update", driver="d.example.com", user=user.name
    )
    assert await write(objects, new, old, user=user) == needed
    allow(objects, "resourceclaims/driver", "arbitrary-node:update", names=("d.example.com",))
    assert await write(objects, new, old, user=user) == ""
    # Of an account on the node, too.
    assert await write(objects, new, old, user=ON_NODE) == ""


@pytest.mark.parametrize(
    ("found", "node"),
    [
        ({}, ""),
        (allocation("n1"), "n1"),
        (allocation("n1", "n2"), ""),
        (allocation("n1", matchExpressions=[{"key": "a", "operator": "Exists"}]), ""),
        (
            {
                "nodeSelector": {
                    "nodeSelectorTerms": allocation("n1")["nodeSelector"]["nodeSelectorTerms"] * 2
                }
            },
            "",
        ),
    ],
    ids=str,
)
def test_the_node_of_an_allocation(found: dict[str, Any], node: str) -> None:
    assert node_of(claim(allocation=found).status.allocation) == node


@pytest.mark.parametrize(
    ("new", "old", "drivers"),
    [
        ([device("a")], [], {"d.example.com"}),
        ([], [device("a")], {"d.example.com"}),
        ([device("a")], [device("b")], {"d.example.com"}),
        ([device("a", data={"k": 1})], [device("a")], {"d.example.com"}),
        ([device("a", shareID="1")], [device("a", shareID="2")], {"d.example.com"}),
        ([device("a"), device("a", "e")], [device("a")], {"e"}),
        ([device("a"), device("b", "e")], [device("b", "e"), device("a")], set()),
    ],
)
def test_changed_drivers(new: list[Any], old: list[Any], drivers: set[str]) -> None:
    assert changed_drivers(claim(devices=new).status, claim(devices=old).status) == drivers


def test_what_a_deallocation_drops_is_no_change_of_a_driver() -> None:
    result = {"request": "r", "driver": "d.example.com", "pool": "p", "device": "a"}
    old = claim(allocation={"devices": {"results": [result]}}, devices=[device("a")])
    assert changed_drivers(claim().status, old.status) == set()
    assert changed_drivers(claim(devices=[device("b")]).status, old.status) == {"d.example.com"}


async def test_the_server_itself_needs_nothing(objects: Objects) -> None:
    plugin = ClaimStatusAuthorization(Union([RBAC.over(objects)]))
    new = claim(allocation=allocation("n1"))
    request = AdmissionRequest("UPDATE", kinds.RESOURCE_CLAIM, "default", "c", "status", new, claim())
    await plugin.validate(request, objects.lookup)
