"""Flow schemas and priority levels as objects: defaults, validation, and what the server does with them."""

from __future__ import annotations

import copy
from typing import Any

import anyio
import pytest

from nominee.apiserver.flow_control import stored
from nominee.apiserver.flow_control.controller import FlowControl
from nominee.apiserver.kinds.flowcontrol import bootstrap
from nominee.apiserver.objects.attributes import Attributes
from nominee.apiserver.objects.user import User
from nominee.machinery.api.kinds import FLOW_SCHEMA, PRIORITY_LEVEL_CONFIGURATION
from nominee.machinery.runtime.clock import SystemClock
from nominee.machinery.wire import codec
from tests.apiserver.cache.test_watch_cache import running
from tests.apiserver.rest.asgi import Rest, in_memory
from tests.apiserver.rest.test_api_list import started
from tests.support.etcd import ThrowawayEtcd
from tests.support.eventually import eventually

BASE = "/apis/flowcontrol.apiserver.k8s.io/v1"
SCHEMAS, LEVELS = f"{BASE}/flowschemas", f"{BASE}/prioritylevelconfigurations"
LEVEL: dict[str, Any] = {
    "metadata": {"name": "l"},
    "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": {}}}},
}
SCHEMA: dict[str, Any] = {
    "metadata": {"name": "s"},
    "spec": {
        "priorityLevelConfiguration": {"name": "l"},
        "distinguisherMethod": {"type": "ByUser"},
        "rules": [
            {
                "subjects": [{"kind": "User", "user": {"name": "alice"}}],
                "resourceRules": [
                    {
                        "verbs": ["*"],
                        "apiGroups": ["*"],
                        "resources": ["*"],
                        "namespaces": ["*"],
                        "clusterScope": True,
                    }
                ],
            }
        ],
    },
}


async def test_what_is_left_out_is_filled_in() -> None:
    rest = await in_memory()
    level = (await rest.json("POST", LEVELS, LEVEL)).document["spec"]["limited"]
    assert (level["nominalConcurrencyShares"], level["lendablePercent"]) == (30, 0)
    assert level["limitResponse"]["queuing"] == {"queues": 64, "handSize": 8, "queueLengthLimit": 50}
    schema = (await rest.json("POST", SCHEMAS, SCHEMA)).document
    assert (schema["spec"]["matchingPrecedence"], schema["metadata"]["generation"]) == (1000, 1)


def changed(document: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    made = copy.deepcopy(document)
    place: Any = made
    *way, last = path.split(".")
    for step in way:
        place = place[int(step)] if step.isdecimal() else place.setdefault(step, {})
    place[last] = value
    return made


QUEUING = "spec.limited.limitResponse.queuing"
SHARES = "spec.limited.nominalConcurrencyShares"
METHOD = "spec.distinguisherMethod.type"
REFERENCE = "spec.priorityLevelConfiguration.name"
RULE = "spec.rules.0"
FIRST = "spec.rules[0].resourceRules[0]"


@pytest.mark.parametrize(
    ("document", "path", "value", "field", "text"),
    [
        (LEVEL, "spec.type", "Exempt", "spec.type", "if and only if name is 'exempt'"),
        (LEVEL, "spec.type", "Odd", "spec.type", 'supported values: "Exempt", "Limited"'),
        (LEVEL, "spec.limited.lendablePercent", 101, "spec.limited.lendablePercent", "between 0 and 100"),
        (LEVEL, SHARES, -1, SHARES, "non-negative"),
        (LEVEL, f"{QUEUING}.handSize", 65, f"{QUEUING}.handSize", "should not be greater than queues (64)"),
        (LEVEL, f"{QUEUING}.handSize", 12, f"{QUEUING}.handSize", "deckSize 64 and handSize 12"),
        (LEVEL, f"{QUEUING}.queues", -1, f"{QUEUING}.queues", "must be positive"),
        (LEVEL, "spec.limited.limitResponse", {"type": "Reject", "queuing": {}}, QUEUING, "must be nil"),
        (SCHEMA, "spec.matchingPrecedence", 1, "spec.matchingPrecedence", "only the schema named 'exempt'"),
        (SCHEMA, "spec.matchingPrecedence", 10001, "spec.matchingPrecedence", "not be greater than 10000"),
        (SCHEMA, METHOD, "x", METHOD, "ByNamespace"),
        (SCHEMA, REFERENCE, "", REFERENCE, "must reference"),
        (SCHEMA, f"{RULE}.subjects", [], "spec.rules[0].subjects", "at least one value"),
        (SCHEMA, f"{RULE}.subjects.0.kind", "Group", "spec.rules[0].subjects[0].group", "is required"),
        (SCHEMA, f"{RULE}.resourceRules", [], "spec.rules[0]", "at least one of resourceRules"),
        (SCHEMA, f"{RULE}.resourceRules.0.verbs", ["*", "get"], f"{FIRST}.verbs", "other verbs"),
        (SCHEMA, f"{RULE}.resourceRules.0.verbs", ["look"], f"{FIRST}.verbs", '"watch"'),
        (SCHEMA, f"{RULE}.nonResourceRules", [{"verbs": ["get"], "nonResourceURLs": ["/a*"]}],
         "spec.rules[0].nonResourceRules[0].nonResourceURLs[0]", "suffix matching"),
    ],
)  # fmt: skip
async def test_what_is_refused(
    document: dict[str, Any], path: str, value: Any, field: str, text: str
) -> None:
    rest = await in_memory()
    where = LEVELS if document is LEVEL else SCHEMAS
    reply = await rest.json("POST", where, changed(document, path, value))
    assert (reply.code, reply.document["reason"]) == (422, "Invalid"), reply.body
    causes = {cause["field"]: cause["message"] for cause in reply.document["details"]["causes"]}
    assert text in causes[field]


async def test_mandatory_objects_are_as_they_are() -> None:
    rest = await in_memory()
    await created(rest)
    for path, key in ((f"{SCHEMAS}/catch-all", "matchingPrecedence"), (f"{LEVELS}/catch-all", "type")):
        found = (await rest.json("GET", path)).document
        assert (await rest.json("PUT", path, found)).code == 200
        found["spec"][key] = 9000 if key == "matchingPrecedence" else "Exempt"
        refused = await rest.json("PUT", path, found)
        assert refused.code == 422
        assert "must equal the fixed value" in refused.document["message"]
    exempt = {"spec": {"exempt": {"lendablePercent": 50}}}
    patched = await rest.json("PATCH", f"{LEVELS}/exempt", exempt, content="application/merge-patch+json")
    assert patched.code == 200, patched.body


async def created(rest: Rest) -> None:
    """All that a server writes at its first start is valid."""
    for path, objects in (
        (LEVELS, [*bootstrap.mandatory_levels(), *bootstrap.suggested_levels()]),
        (SCHEMAS, [*bootstrap.mandatory_schemas(), *bootstrap.suggested_schemas()]),
    ):
        for obj in objects:
            made = await rest.json("POST", path, codec.to_json(obj))
            assert made.code == 201, made.body


async def test_the_server_writes_follows_and_reports_its_objects(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench, anyio.create_task_group() as group:
        rest = await started(bench)
        control = FlowControl(SystemClock())
        registry = rest.registry
        group.start_soon(stored.run, control, registry, bench.cache, SystemClock())

        def dangling(name: str) -> str:
            found = bench.cache.get(FLOW_SCHEMA, "", name)
            conditions = found.message.status.conditions if found is not None else ()
            return "".join(each.status for each in conditions if each.type == "Dangling")

        await eventually(lambda: len(bench.cache.list(FLOW_SCHEMA)) == 11)
        await eventually(lambda: all(dangling(obj.name) == "False" for obj in bench.cache.list(FLOW_SCHEMA)))
        assert len(bench.cache.list(PRIORITY_LEVEL_CONFIGURATION)) == 8
        assert (await rest.json("POST", SCHEMAS, SCHEMA)).code == 201
        await eventually(lambda: dangling("s") == "True")
        alice = User("alice", ("system:authenticated",))
        asked = Attributes("list", "pods")
        assert control.arrive(alice, asked).schema == "global-default"
        assert (await rest.json("POST", LEVELS, LEVEL)).code == 201
        await eventually(lambda: dangling("s") == "False")
        await eventually(lambda: control.arrive(alice, asked).schema == "s")
        sizes = stored.sizes(bench.cache)
        assert sizes("flowcontrol.apiserver.k8s.io", "flowschemas").count == 12
        assert sizes("flowcontrol.apiserver.k8s.io", "flowschemas").bytes_each > 100
        assert sizes("", "nonsense").count == 0
        group.cancel_scope.cancel()
