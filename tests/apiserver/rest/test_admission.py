"""What LimitRanges, ResourceQuotas, storage classes and nodes make of a write."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.apiserver.admission.chain import plugins
from nominee.machinery.features.gates import Gates
from nominee.machinery.runtime.clock import FakeClock
from tests.apiserver.rest.asgi import VERSION, Reply, Rest, in_memory

_CORE = "/api/v1/namespaces/default"
_CLASSES = "/apis/storage.k8s.io/v1/storageclasses"


@pytest.fixture
async def rest() -> Rest:
    return await in_memory()


def _container(name: str = "c", /, **resources: Any) -> dict[str, Any]:
    return {"name": name, "image": "i", "resources": resources}


async def _pod(rest: Rest, *containers: Any, query: Any = None, **spec: Any) -> Reply:
    document = {"metadata": {"name": "p"}, "spec": {"containers": [*containers] or [_container()], **spec}}
    return await rest.json("POST", f"{_CORE}/pods", document, query)


async def _claim(rest: Rest, size: str, name: str = "claim", **spec: Any) -> Reply:
    document = {
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec},
    }
    return await rest.json("POST", f"{_CORE}/persistentvolumeclaims", document)


async def _limits(rest: Rest, **limit: Any) -> None:
    document = {"metadata": {"name": "limits"}, "spec": {"limits": [limit]}}
    reply = await rest.json("POST", f"{_CORE}/limitranges", document)
    assert reply.code == 201, reply.body


async def _quota(rest: Rest, hard: Any, used: Any = None, name: str = "q", **spec: Any) -> None:
    document = {"metadata": {"name": name}, "spec": {"hard": hard, **spec}}
    made = await rest.json("POST", f"{_CORE}/resourcequotas", document)
    assert made.code == 201, made.body
    document = made.document
    document["status"] = {"hard": hard, "used": used if used is not None else dict.fromkeys(hard, "0")}
    reply = await rest.json("PUT", f"{_CORE}/resourcequotas/{name}/status", document)
    assert reply.code == 200, reply.body


async def _patch(rest: Rest, path: str, document: Any) -> Reply:
    return await rest.json("PATCH", path, document, content="application/merge-patch+json")


async def _used(rest: Rest, name: str = "q") -> Any:
    return (await rest.json("GET", f"{_CORE}/resourcequotas/{name}")).document["status"]["used"]


def _refused(reply: Reply, problem: str, what: str = 'pods "p"') -> None:
    assert (reply.code, reply.document["reason"]) == (403, "Forbidden"), reply.body
    assert reply.document["message"] == f"{what} is forbidden: {problem}"


async def test_containers_get_defaults(rest: Rest) -> None:
    await _limits(
        rest, type="Container", default={"cpu": "2", "memory": "1Gi"}, defaultRequest={"cpu": "100m"}
    )
    made = await _pod(
        rest, _container(), _container("own", requests={"cpu": "1"}), initContainers=[_container("first")]
    )
    assert made.code == 201, made.body
    spec = made.document["spec"]
    both = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "1Gi"}}
    assert [each["resources"] for each in spec["containers"]] == [
        both,
        {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}},
    ]
    assert spec["initContainers"][0]["resources"] == both
    assert made.document["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == (
        "LimitRanger plugin set: cpu, memory request for container c; cpu, memory limit for container c;"
        " memory request for container own; cpu, memory limit for container own;"
        " cpu, memory request for init container first; cpu, memory limit for init container first"
    )
    assert made.document["status"]["qosClass"] == "Burstable"


@pytest.mark.parametrize(
    ("limit", "resources", "problem"),
    [
        ({"min": {"cpu": "1"}}, {"requests": {"cpu": "500m"}},
         "minimum cpu usage per Container is 1, but request is 500m"),
        ({"min": {"memory": "1Mi"}, "max": {"cpu": "1"}},
         {"requests": {"memory": "1Ki"}, "limits": {"cpu": "2"}},
         "[minimum memory usage per Container is 1Mi, but request is 1Ki,"
         " maximum cpu usage per Container is 1, but limit is 2]"),
        ({"maxLimitRequestRatio": {"cpu": "2"}}, {"requests": {"cpu": "1"}, "limits": {"cpu": "3"}},
         "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000"),
        ({"maxLimitRequestRatio": {"cpu": "2"}}, {"requests": {"cpu": "1"}},
         "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0"),
        ({"maxLimitRequestRatio": {"cpu": "2"}}, {},
         "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0"),
    ],
)  # fmt: skip
async def test_bounds_of_containers(rest: Rest, limit: Any, resources: Any, problem: str) -> None:
    await _limits(rest, type="Container", **limit)
    _refused(await _pod(rest, _container(**resources)), problem)


async def test_bounds_of_pods(rest: Rest) -> None:
    await _limits(rest, type="Pod", max={"cpu": "1"}, min={"memory": "1Mi"})
    _refused(
        await _pod(rest),
        "[minimum memory usage per Pod is 1Mi.  No request is specified,"
        " maximum cpu usage per Pod is 1.  No limit is specified]",
    )
    half = {"limits": {"cpu": "600m", "memory": "1Mi"}}
    _refused(
        await _pod(rest, _container("a", **half), _container("b", **half)),
        "maximum cpu usage per Pod is 1, but limit is 1200m",
    )
    assert (await _pod(rest, _container(**half))).code == 201


async def test_bounds_of_claims(rest: Rest) -> None:
    await _limits(rest, type="PersistentVolumeClaim", min={"storage": "1Gi"}, max={"storage": "2Gi"})
    what = 'persistentvolumeclaims "claim"'
    _refused(
        await _claim(rest, "1Mi"),
        "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi",
        what,
    )
    _refused(
        await _claim(rest, "3Gi"),
        "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi",
        what,
    )
    assert (await _claim(rest, "2Gi")).code == 201


async def test_a_quota_is_charged_and_bounds(rest: Rest) -> None:
    await _quota(rest, {"pods": "5", "requests.cpu": "1", "limits.memory": "1Gi", "count/pods": "3"})
    said = {"requests": {"cpu": "600m"}, "limits": {"memory": "100Mi"}}
    assert (await _pod(rest, _container(**said), query={"dryRun": "All"})).code == 201
    assert await _used(rest) == {"count/pods": "0", "limits.memory": "0", "pods": "0", "requests.cpu": "0"}
    assert (await _pod(rest, _container(**said))).code == 201
    charged = {"count/pods": "1", "limits.memory": "100Mi", "pods": "1", "requests.cpu": "600m"}
    assert await _used(rest) == charged
    _refused(
        await _pod(rest, _container(**said)),
        "exceeded quota: q, requested: requests.cpu=600m, used: requests.cpu=600m, limited: requests.cpu=1",
    )
    _refused(
        await _pod(rest, _container("b"), _container("a", limits={"memory": "1"})),
        "failed quota: q: must specify limits.memory for: b; requests.cpu for: a,b",
    )
    assert await _used(rest) == charged


async def test_a_quota_without_a_status(rest: Rest) -> None:
    await rest.json(
        "POST", f"{_CORE}/resourcequotas", {"metadata": {"name": "new"}, "spec": {"hard": {"pods": 0}}}
    )
    assert (await _pod(rest)).code == 201
    await _quota(rest, {"configmaps": "1", "count/configmaps": "1"}, {"configmaps": "0"})
    reply = await rest.json("POST", f"{_CORE}/configmaps", {"metadata": {"name": "m"}})
    problem = "status unknown for quota: q, resources: configmaps,count/configmaps"
    _refused(reply, problem, 'configmaps "m"')


@pytest.mark.parametrize(
    ("scopes", "spec", "refused"),
    [
        ({"scopes": ["BestEffort"]}, {}, True),
        ({"scopes": ["NotBestEffort"]}, {}, False),
        ({"scopes": ["Terminating"]}, {"activeDeadlineSeconds": 5}, True),
        ({"scopes": ["Terminating"]}, {}, False),
        ({"scopes": ["NotTerminating"]}, {}, True),
        ({"scopeSelector": {"matchExpressions": [
            {"scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical"]}]}},
         {"priorityClassName": "system-node-critical"}, True),
        ({"scopeSelector": {"matchExpressions": [
            {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}},
         {"priorityClassName": "system-node-critical"}, False),
    ],
)  # fmt: skip
async def test_scopes(rest: Rest, scopes: Any, spec: Any, refused: bool) -> None:
    await _quota(rest, {"pods": "0"}, **scopes)
    reply = await _pod(rest, **spec)
    assert reply.code == (403 if refused else 201), reply.body


async def test_a_pod_that_becomes_terminating_is_charged_to_that_scope(rest: Rest) -> None:
    await _quota(rest, {"pods": "1"}, name="ends", scopes=["Terminating"])
    await _quota(rest, {"pods": "9"}, name="lasts", scopes=["NotTerminating"])
    assert (await _pod(rest)).code == 201
    second = {"metadata": {"name": "second"}, "spec": {"containers": [_container()]}}
    assert (await rest.json("POST", f"{_CORE}/pods", second)).code == 201
    assert (await _used(rest, "ends"), await _used(rest, "lasts")) == ({"pods": "0"}, {"pods": "2"})

    ends = {"spec": {"activeDeadlineSeconds": 60}}
    assert (await _patch(rest, f"{_CORE}/pods/p", ends)).code == 200
    # What a quota is no longer charged for is the controller's to count.
    assert (await _used(rest, "ends"), await _used(rest, "lasts")) == ({"pods": "1"}, {"pods": "2"})
    sooner = {"spec": {"activeDeadlineSeconds": 30}}
    assert (await _patch(rest, f"{_CORE}/pods/p", sooner)).code == 200
    _refused(
        await _patch(rest, f"{_CORE}/pods/second", ends),
        "exceeded quota: ends, requested: pods=1, used: pods=1, limited: pods=1",
        'pods "second"',
    )


async def test_a_claim_is_charged_to_each_attributes_class_that_it_names(rest: Rest) -> None:
    for name in ("gold", "silver", "bronze"):
        await _quota(
            rest, {"persistentvolumeclaims": "0" if name == "bronze" else "1"}, name=name,
            scopeSelector={"matchExpressions": [
                {"scopeName": "VolumeAttributesClass", "operator": "In", "values": [name]}]},
        )  # fmt: skip
    path = f"{_CORE}/persistentvolumeclaims/claim"
    claim = (await _claim(rest, "1Gi", volumeAttributesClassName="gold")).document
    one, none = {"persistentvolumeclaims": "1"}, {"persistentvolumeclaims": "0"}
    assert (await _used(rest, "gold"), await _used(rest, "silver")) == (one, none)
    claim["status"] = {"phase": "Bound", "currentVolumeAttributesClassName": "gold"}
    claim = (await rest.json("PUT", f"{path}/status", claim)).document
    claim["spec"]["volumeAttributesClassName"] = "silver"
    reply = await rest.json("PUT", path, claim)
    assert reply.code == 200, reply.body
    assert (await _used(rest, "gold"), await _used(rest, "silver")) == (one, one)
    claim = reply.document
    claim["status"]["currentVolumeAttributesClassName"] = "bronze"
    _refused(
        await rest.json("PUT", f"{path}/status", claim),
        "exceeded quota: bronze, requested: persistentvolumeclaims=1, used: persistentvolumeclaims=0,"
        " limited: persistentvolumeclaims=0",
        'persistentvolumeclaims "claim"',
    )
    claim["status"]["currentVolumeAttributesClassName"] = "silver"
    assert (await rest.json("PUT", f"{path}/status", claim)).code == 200


async def test_claims_and_services_use_up_a_quota(rest: Rest) -> None:
    await _quota(
        rest,
        {"requests.storage": "3Gi", "fast.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
         "services.nodeports": "1"},
    )  # fmt: skip
    assert (await _claim(rest, "1Gi", "a", storageClassName="fast")).code == 201
    reply = await _claim(rest, "1Gi", "b", storageClassName="fast")
    name = "fast.storageclass.storage.k8s.io/persistentvolumeclaims"
    _refused(
        reply,
        f"exceeded quota: q, requested: {name}=1, used: {name}=1, limited: {name}=1",
        'persistentvolumeclaims "b"',
    )
    service = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 1}]}}
    made = await rest.json("POST", f"{_CORE}/services", service)
    assert made.code == 201
    document = made.document
    document["spec"]["type"] = "NodePort"
    document["spec"]["ports"].append({"port": 2, "name": "two"})
    document["spec"]["ports"][0]["name"] = "one"
    _refused(
        await rest.json("PUT", f"{_CORE}/services/s", document),
        "exceeded quota: q, requested: services.nodeports=2, used: services.nodeports=0,"
        " limited: services.nodeports=1",
        'services "s"',
    )


async def test_a_claim_gets_the_default_class(rest: Rest) -> None:
    assert "storageClassName" not in (await _claim(rest, "1Gi", "before")).document["spec"]
    for name, default in (("b", "true"), ("a", "true"), ("0", "false")):
        annotations = {"storageclass.kubernetes.io/is-default-class": default}
        document = {"metadata": {"name": name, "annotations": annotations}, "provisioner": "x/y"}
        assert (await rest.json("POST", _CLASSES, document)).code == 201
    assert (await _claim(rest, "1Gi")).document["spec"]["storageClassName"] == "a"
    assert (await _claim(rest, "1Gi", "own", storageClassName="")).document["spec"]["storageClassName"] == ""


async def _ingress(rest: Rest, name: str, annotations: Any = None, **spec: Any) -> str | None:
    """Create an Ingress and return its class."""
    document = {
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}, **spec},
    }
    made = await rest.json("POST", "/apis/networking.k8s.io/v1/namespaces/default/ingresses", document)
    assert made.code == 201, made.body
    found: str | None = made.document["spec"].get("ingressClassName")
    return found


async def test_an_ingress_gets_the_default_class() -> None:
    clock = FakeClock()
    rest = await in_memory(clock=clock)
    assert await _ingress(rest, "before") is None
    for name, default, seconds in (("a", "true", 0), ("c", "true", 5), ("b", "true", 0), ("0", "false", 5)):
        await clock.advance(seconds)
        annotations = {"ingressclass.kubernetes.io/is-default-class": default}
        document = {"metadata": {"name": name, "annotations": annotations}, "spec": {"controller": "x/y"}}
        reply = await rest.json("POST", "/apis/networking.k8s.io/v1/ingressclasses", document)
        assert reply.code == 201, reply.body
    # The newest class; of two of the same second the first by name.
    assert await _ingress(rest, "without") == "b"
    assert await _ingress(rest, "own", ingressClassName="other") == "other"
    assert await _ingress(rest, "annotated", {"kubernetes.io/ingress.class": "nginx"}) is None


def test_the_default_class_of_ingresses_is_a_plugin_that_can_be_disabled() -> None:
    gates = Gates("apiserver", VERSION)
    names = [plugin.name for plugin in plugins(gates, FakeClock())]
    after = names.index("CertificateSubjectRestriction") + 1
    assert names[after] == "DefaultIngressClass"
    assert [plugin.name for plugin in plugins(gates, FakeClock(), ["DefaultIngressClass"])] == [
        *names[:after], *names[after + 1 :]
    ]  # fmt: skip


async def test_claims_grow_where_the_class_allows_it(rest: Rest) -> None:
    document = {"metadata": {"name": "fixed"}, "provisioner": "x/y"}
    await rest.json("POST", _CLASSES, document)
    growing = {"metadata": {"name": "growing"}, "provisioner": "x/y", "allowVolumeExpansion": True}
    await rest.json("POST", _CLASSES, growing)
    for name, code in (("fixed", 403), ("growing", 200)):
        claim = (await _claim(rest, "1Gi", name, storageClassName=name, volumeName="v")).document
        path = f"{_CORE}/persistentvolumeclaims/{name}"
        claim["status"]["phase"] = "Bound"
        claim = (await rest.json("PUT", f"{path}/status", claim)).document
        claim["spec"]["resources"]["requests"]["storage"] = "2Gi"
        reply = await rest.json("PUT", path, claim)
        assert reply.code == code, reply.body


async def test_pods_carry_their_nodes_place(rest: Rest) -> None:
    labels = {"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r", "other": "o"}
    await rest.json("POST", "/api/v1/nodes", {"metadata": {"name": "n", "labels": labels}})
    document = {"metadata": {"name": "placed", "labels": {"topology.kubernetes.io/zone": "mine"}},
                "spec": {"nodeName": "n", "containers": [_container()]}}  # fmt: skip
    made = await rest.json("POST", f"{_CORE}/pods", document)
    place = {"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r"}
    assert made.document["metadata"]["labels"] == place
    await _pod(rest)
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
    reply = await rest.json("POST", f"{_CORE}/pods/p/binding", binding)
    assert reply.code == 201, reply.body
    assert (await rest.json("GET", f"{_CORE}/pods/p")).document["metadata"]["labels"] == place


async def test_a_node_must_know_how_to_resize(rest: Rest) -> None:
    node = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4", "memory": "4Gi"}}}
    made = await rest.json("POST", "/api/v1/nodes", node)
    pod = (await _pod(rest, nodeName="n", resources={"requests": {"cpu": "1"}})).document
    pod["spec"]["resources"]["requests"]["cpu"] = "2"
    _refused(
        await rest.json("PUT", f"{_CORE}/pods/p/resize", pod),
        "pod update requires features InPlacePodLevelResourcesVerticalScaling"
        ' which are not available on node "n"',
    )
    node = made.document
    node["status"]["declaredFeatures"] = ["InPlacePodLevelResourcesVerticalScaling"]
    assert (await rest.json("PUT", "/api/v1/nodes/n/status", node)).code == 200
    reply = await rest.json("PUT", f"{_CORE}/pods/p/resize", pod)
    assert reply.code == 200, reply.body
