"""What real components ask of an API server: kube-scheduler 1.36, kube-controller-manager, kubelet.

tests/golden/exchanges/wire_examples.jsonl: exchanges of the real scheduler and API server, as bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from nominee.apiserver.cache.watch_cache import CacheLimits
from nominee.apiserver.fronts.rest.answers.watching import Frames
from nominee.apiserver.fronts.rest.http import text
from nominee.apiserver.fronts.rest.http.media import negotiate
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.pb import coordination, core, events, meta
from nominee.machinery.runtime.clock import FakeClock
from nominee.machinery.wire import codec, envelope
from nominee.pb.k8s.io.api.authorization.v1 import generated_pb2 as authorization
from tests.apiserver.cache.test_watch_cache import Bench, running
from tests.apiserver.rest.asgi import Rest, in_memory
from tests.apiserver.rest.test_api_list import started
from tests.support.etcd import ThrowawayEtcd
from tests.support.patience import PATIENCE_SECONDS
from tests.support.recordings import EXCHANGES

PROTOBUF = "application/vnd.kubernetes.protobuf"
STREAM = f"{PROTOBUF};stream=watch"
_EXAMPLES = EXCHANGES / "wire_examples.jsonl"

SCHEDULER = """
    /api/v1/namespaces /api/v1/nodes /api/v1/persistentvolumeclaims /api/v1/persistentvolumes /api/v1/pods
    /api/v1/replicationcontrollers /api/v1/services /apis/apps/v1/replicasets /apis/apps/v1/statefulsets
    /apis/policy/v1/poddisruptionbudgets /apis/resource.k8s.io/v1/deviceclasses
    /apis/resource.k8s.io/v1/resourceclaims /apis/resource.k8s.io/v1/resourceslices
    /apis/storage.k8s.io/v1/csidrivers /apis/storage.k8s.io/v1/csinodes
    /apis/storage.k8s.io/v1/csistoragecapacities /apis/storage.k8s.io/v1/storageclasses
    /apis/storage.k8s.io/v1/volumeattachments
"""
# Not here: admissionregistration and apiregistration, which nothing serves yet.
CONTROLLER_MANAGER = """
    /api/v1/configmaps /api/v1/endpoints /api/v1/limitranges /api/v1/podtemplates /api/v1/resourcequotas
    /api/v1/secrets /api/v1/serviceaccounts /apis/apps/v1/controllerrevisions /apis/apps/v1/daemonsets
    /apis/apps/v1/deployments /apis/autoscaling/v2/horizontalpodautoscalers /apis/batch/v1/cronjobs
    /apis/batch/v1/jobs /apis/certificates.k8s.io/v1/certificatesigningrequests
    /apis/coordination.k8s.io/v1/leases /apis/discovery.k8s.io/v1/endpointslices
    /apis/flowcontrol.apiserver.k8s.io/v1/flowschemas
    /apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations
    /apis/networking.k8s.io/v1/ingressclasses /apis/networking.k8s.io/v1/ingresses
    /apis/networking.k8s.io/v1/ipaddresses /apis/networking.k8s.io/v1/networkpolicies
    /apis/networking.k8s.io/v1/servicecidrs /apis/node.k8s.io/v1/runtimeclasses
    /apis/rbac.authorization.k8s.io/v1/clusterrolebindings /apis/rbac.authorization.k8s.io/v1/clusterroles
    /apis/rbac.authorization.k8s.io/v1/rolebindings /apis/rbac.authorization.k8s.io/v1/roles
    /apis/resource.k8s.io/v1/resourceclaimtemplates /apis/scheduling.k8s.io/v1/priorityclasses
    /apis/storage.k8s.io/v1/volumeattributesclasses
"""


def _kind_of(path: str) -> Kind[Any]:
    *_, group, version, plural = ["", *path.strip("/").split("/")]
    found = kinds.by_resource("" if group == "api" else group, version, plural)
    assert found is not None, path
    return found


def _frames(body: bytes) -> Iterator[meta.WatchEvent]:
    at = 0
    while at < len(body):
        size = int.from_bytes(body[at : at + 4], "big")
        yield meta.WatchEvent.FromString(body[at + 4 : at + 4 + size])
        at += 4 + size


async def test_informers_list_and_watch_in_protobuf(etcd: ThrowawayEtcd) -> None:
    """Each informer's first three requests; one 404 and a real scheduler never schedules."""
    failures: list[str] = []

    async def inform(rest: Rest, path: str) -> None:
        kind = _kind_of(path)
        more = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"} if kind is kinds.POD else {}
        headers = {"accept": f"{PROTOBUF}, */*"}
        page = await rest.request("GET", path, {"limit": "500", "resourceVersion": "0", **more}, b"", headers)
        if page.code != 200 or page.header("content-type") != PROTOBUF:
            failures.append(f"{path}: {page.code} {page.header('content-type')}")
            return
        version, name, raw = envelope.unwrap(page.body)
        listed: Any = kind.list_message.FromString(raw)
        if (version, name) != (kind.api_version, f"{kind.kind}List"):
            failures.append(f"{path}: {version} {name}")
        query = {
            "watch": "true", "timeoutSeconds": "1", "allowWatchBookmarks": "true",
            "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", **more,
        }  # fmt: skip
        reply = await rest.request("GET", path, query, b"", headers)
        frames = list(_frames(reply.body))
        end = [frame for frame in frames if frame.type == "BOOKMARK"]
        if reply.header("content-type") != STREAM or len(frames) <= len(listed.items) or not end:
            failures.append(f"{path}: {reply.code} {[frame.type for frame in frames]}")
            return
        mark = envelope.decode(kind, end[0].object.raw)
        if mark.metadata.annotations.get("k8s.io/initial-events-end") != "true":
            failures.append(f"{path}: a bookmark without its mark")

    async with running(etcd, CacheLimits(wait_seconds=PATIENCE_SECONDS, bookmark_seconds=0.2)) as bench:
        rest = await started(bench)
        async with anyio.create_task_group() as group:
            for path in f"{SCHEDULER} {CONTROLLER_MANAGER}".split():
                group.start_soon(inform, rest, path)
    assert not failures, "\n".join(failures)


async def test_what_a_scheduler_finds_at_its_start(etcd: ThrowawayEtcd) -> None:
    async with running(etcd, CacheLimits(wait_seconds=PATIENCE_SECONDS)) as bench:
        rest = await started(bench)
        headers = {"accept": f"{PROTOBUF}, */*"}
        reply = await rest.request("GET", "/apis/events.k8s.io/v1", None, b"", headers)
        assert (reply.code, reply.header("content-type")) == (200, PROTOBUF)
        version, kind, raw = envelope.unwrap(reply.body)
        assert (version, kind) == ("v1", "APIResourceList")
        found = meta.APIResourceList.FromString(raw)
        assert (found.groupVersion, found.resources[0].name) == ("events.k8s.io/v1", "events")
        # The root of trust of requests that come by a proxy; without it, its log complains.
        path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
        reply = await rest.request("GET", path, None, b"", headers)
        assert reply.code == 200, reply.body


# Resources of the real server that are not here.
NOT_SERVED = {
    "apiservices", "customresourcedefinitions",
    "mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "mutatingwebhookconfigurations",
    "validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations",
}  # fmt: skip
# Nothing serves paths into containers and through nodes, so discovery leaves them out.
UNSERVED_SUBRESOURCES = {"attach", "exec", "log", "portforward", "proxy"}


async def test_discovery_is_the_real_servers() -> None:
    """Names, scope, verbs, short names, categories, subresources of every resource (1.36.2)."""
    rest = await in_memory()
    form = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    ours: dict[tuple[str, str, str], Any] = {}
    for path in ("/api", "/apis"):
        reply = await rest.request("GET", path, None, b"", {"accept": form})
        for group in reply.document["items"]:
            for version in group["versions"]:
                for found in version["resources"]:
                    name = group["metadata"].get("name", "")
                    ours[name, version["version"], found["resource"]] = found
    wanted = {}
    for line in (_EXAMPLES.parent / "discovery.jsonl").read_text("utf-8").splitlines():
        found = json.loads(line)
        place = (found.pop("group"), found.pop("version"), found["resource"])
        if place[2] in NOT_SERVED:
            continue
        if "subresources" in found:
            served = {sub["subresource"] for sub in ours.get(place, {}).get("subresources", ())}
            left_out = UNSERVED_SUBRESOURCES - served
            kept = [sub for sub in found["subresources"] if sub["subresource"] not in left_out]
            found |= {"subresources": kept}
        wanted[place] = found
    assert len(wanted) > 50
    for place, found in wanted.items():
        assert ours.get(place) == found, place
    assert {group for group, _, _ in ours.keys() - wanted.keys()} <= {
        "metrics.k8s.io",
        "scheduling.k8s.io",
        "apiextensions.k8s.io",
        "admissionregistration.k8s.io",
    }


async def test_leases_and_reviews_in_protobuf(etcd: ThrowawayEtcd) -> None:
    """A leader's lease is made, read and renewed; who asks for metrics is asked about."""
    headers = {"accept": f"{PROTOBUF}, */*", "content-type": PROTOBUF}
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    async with running(etcd, CacheLimits(wait_seconds=PATIENCE_SECONDS)) as bench:
        rest = await started(bench)
        lease = coordination.Lease()
        lease.metadata.name, lease.metadata.namespace = "kube-scheduler", "kube-system"
        lease.spec.holderIdentity, lease.spec.leaseDurationSeconds = "one", 15
        lease.spec.renewTime.seconds, lease.spec.renewTime.nanos = 1_795_228_177, 8_739_000
        made = await rest.request("POST", leases, None, envelope.encode(lease), headers)
        assert made.code == 201, made.body
        read = await rest.request("GET", f"{leases}/kube-scheduler", {"timeout": "5s"}, b"", headers)
        held = envelope.decode(kinds.LEASE, read.body)
        assert (held.spec.holderIdentity, held.spec.renewTime.nanos) == ("one", 8_739_000)
        held.spec.holderIdentity, held.spec.leaseTransitions = "", 1
        released = await rest.request(
            "PUT", f"{leases}/kube-scheduler", {"timeout": "5s"}, envelope.encode(held), headers
        )
        assert envelope.decode(kinds.LEASE, released.body).spec.leaseTransitions == 1
        late = await rest.request("PUT", f"{leases}/kube-scheduler", None, envelope.encode(held), headers)
        assert (late.code, late.header("content-type")) == (409, PROTOBUF)

        review = authorization.SubjectAccessReview()
        review.spec.user = "system:node:n1"
        review.spec.nonResourceAttributes.path = "/metrics"
        review.spec.nonResourceAttributes.verb = "get"
        body = text.wrap_message("authorization.k8s.io/v1", "SubjectAccessReview", review)
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        answer = await rest.request("POST", path, {"timeout": "10s"}, body, headers)
        assert (answer.code, answer.header("content-type")) == (201, PROTOBUF)
        version, kind, raw = envelope.unwrap(answer.body)
        assert (version, kind) == ("authorization.k8s.io/v1", "SubjectAccessReview")
        assert authorization.SubjectAccessReview.FromString(raw).status.HasField("allowed")
        token = {"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": {"token": "x"}}
        asked = await rest.json("POST", "/apis/authentication.k8s.io/v1/tokenreviews", token)
        assert (asked.code, asked.document["kind"]) == (201, "TokenReview")
        assert "authenticated" not in asked.document["status"]


# --- exchanges in bytes ---


def _example(name: str) -> dict[str, Any]:
    for line in _EXAMPLES.read_text(encoding="utf-8").splitlines():
        found: dict[str, Any] = json.loads(line)
        if found["name"] == name:
            return found
    raise AssertionError(f"no example {name}")


def _without(pod: core.Pod, condition: str) -> None:
    kept = [row for row in pod.status.conditions if row.type != condition]
    del pod.status.conditions[:]
    pod.status.conditions.extend(kept)


def _not_nominated(pod: core.Pod) -> None:
    pod.status.nominatedNodeName = ""


def _not_preempting(pod: core.Pod) -> None:
    _not_nominated(pod)
    _without(pod, "PodScheduled")


def _nominated(pod: core.Pod) -> None:
    _without(pod, "PodScheduled")
    pod.status.nominatedNodeName = "n1"


def _not_deleted(pod: core.Pod) -> None:
    pod.metadata.ClearField("deletionTimestamp")
    pod.metadata.ClearField("deletionGracePeriodSeconds")
    pod.metadata.generation = 1


async def _store(bench: Bench, obj: Any) -> None:
    """As a real API server would have left it in etcd."""
    kind = kinds.of(obj)
    obj.metadata.resourceVersion = ""
    key = kind.key(obj.metadata.namespace, obj.metadata.name)
    await bench.storage.create(key, envelope.encode(obj))


async def _ask(rest: Rest, example: dict[str, Any], body: bytes | None = None) -> bytes:
    if body is None:
        body = bytes.fromhex(example["body"]) if example["body"] else example["text"].encode()
    headers = {"accept": example["accept"], "content-type": example["content-type"]}
    reply = await rest.request(example["method"], example["path"], {"timeout": "10s"}, body, headers)
    assert reply.code == example["status"], reply.body
    assert reply.header("content-type") == PROTOBUF
    return reply.body


def _alike(kind: Kind[Any], data: bytes) -> bytes:
    """The bytes of an object without what differs from run to run."""
    obj = envelope.decode(kind, data)
    obj.metadata.resourceVersion = ""
    del obj.metadata.managedFields[:]
    if obj.metadata.HasField("deletionTimestamp"):
        obj.metadata.deletionTimestamp.seconds = 1
    return envelope.encode(obj)


@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("PATCH that sets nominatedNodeName (binding cycle)", _not_nominated),
        ("PATCH that sets nominatedNodeName (preemption)", _not_preempting),
        ("PATCH DisruptionTarget of the victim", lambda pod: _without(pod, "DisruptionTarget")),
        ("PATCH that clears nominatedNodeName", _nominated),
        ("DELETE of the victim", _not_deleted),
    ],
)
async def test_a_schedulers_writes_of_pods(
    etcd: ThrowawayEtcd, name: str, before: Callable[[core.Pod], None]
) -> None:
    example = _example(name)
    recorded = bytes.fromhex(example["response"])
    pod = envelope.decode(kinds.POD, recorded)
    assert envelope.encode(pod) == recorded
    before(pod)
    async with running(etcd, CacheLimits(wait_seconds=PATIENCE_SECONDS)) as bench:
        rest = await started(bench)
        await _store(bench, pod)
        answer = await _ask(rest, example)
        assert _alike(kinds.POD, answer) == _alike(kinds.POD, recorded)


async def test_a_binding_an_event_and_a_claim(etcd: ThrowawayEtcd) -> None:
    async with running(etcd, CacheLimits(wait_seconds=PATIENCE_SECONDS)) as bench:
        rest = await started(bench)
        example = _example("POST binding")
        _, _, raw = envelope.unwrap(bytes.fromhex(example["body"]))
        pod = envelope.decode(
            kinds.POD,
            bytes.fromhex(_example("PATCH that sets nominatedNodeName (binding cycle)")["response"]),
        )
        pod.metadata.uid = core.Binding.FromString(raw).metadata.uid
        await _store(bench, pod)
        # A Status is the same to the byte.
        assert (await _ask(rest, example)).hex() == example["response"]
        bound = await rest.json("GET", "/api/v1/namespaces/default/pods/p")
        assert bound.document["spec"]["nodeName"] == "n1"
        assert "nominatedNodeName" not in bound.document["status"]

        example = _example("POST event")
        answer = envelope.decode(kinds.EVENTS_EVENT, await _ask(rest, example))
        recorded = envelope.decode(kinds.EVENTS_EVENT, bytes.fromhex(example["response"]))
        for event in (answer, recorded):
            _mask_made(event)
        assert envelope.encode(answer) == envelope.encode(recorded)
        stored = await rest.json("GET", "/api/v1/namespaces/default/events")
        assert stored.document["items"][0]["involvedObject"]["name"] == "p"

        example = _example("PUT of the PVC with selected-node")
        recorded_claim = bytes.fromhex(example["response"])
        claim = envelope.decode(kinds.PERSISTENT_VOLUME_CLAIM, recorded_claim)
        claim.metadata.annotations.clear()
        await _store(bench, claim)
        path = "/api/v1/namespaces/default/persistentvolumeclaims/data"
        version = (await rest.json("GET", path)).document["metadata"]["resourceVersion"]
        body = envelope.decode(kinds.PERSISTENT_VOLUME_CLAIM, bytes.fromhex(example["body"]))
        body.metadata.resourceVersion = version
        answer_claim = await _ask(rest, example, envelope.encode(body))
        kind = kinds.PERSISTENT_VOLUME_CLAIM
        assert _alike(kind, answer_claim) == _alike(kind, recorded_claim)


def _mask_made(event: events.Event) -> None:
    event.metadata.uid = event.metadata.resourceVersion = ""
    event.metadata.creationTimestamp.seconds = 1
    del event.metadata.managedFields[:]


def test_an_error_in_a_watch() -> None:
    """The recorded frame of a watch whose server was behind, to the byte."""
    recorded = (
        "000000c20a054552524f5212b8010ab5016b3873000a0c0a0276311206537461747573129c010a060a0012001a00120746"
        "61696c7572651a3854696d656f75743a20546f6f206c61726765207265736f757263652076657273696f6e3a2033313531"
        "2c2063757272656e743a2033313434220754696d656f75742a430a0012001a0022370a175265736f7572636556657273696f"
        "6e546f6f4c61726765121a546f6f206c61726765207265736f757263652076657273696f6e1a002801320030f8031a0022"
        "00"
    )
    media = negotiate(STREAM)
    assert media is not None
    frame = Frames(media, "", FakeClock()).of_error(errors.too_large_resource_version(3151, 3144))
    assert frame.hex() == recorded


# --- etcd ---


async def test_what_a_real_server_left_in_etcd_is_served(etcd: ThrowawayEtcd) -> None:
    """Every recorded protobuf value of a kind that is served: read, listed, and written back unharmed."""
    values = json.loads((Path(__file__).parents[2] / "golden" / "etcd_values.json").read_text("utf-8"))
    served = []
    for value in values:
        group_version, _, name = value["gvk"].rpartition("/")
        kind = kinds.by_kind(group_version, name)
        if value["enc"] == "protobuf" and kind is not None and value["key"].startswith(kind.key_prefix()):
            served.append((kind, value["key"], bytes.fromhex(value["hex"])))
    assert len(served) >= 14
    async with running(etcd, CacheLimits(wait_seconds=PATIENCE_SECONDS)) as bench:
        for _, key, data in served:
            await bench.storage.create(key, data)
        rest = await started(bench)
        for kind, key, data in served:
            obj: Any = envelope.decode(kind, data)
            path = _path(kind, obj.metadata.namespace, obj.metadata.name)
            found = await rest.json("GET", path)
            assert found.code == 200, (key, found.body)
            shown = found.document
            del shown["metadata"]["resourceVersion"]
            assert shown == codec.to_json(obj), key
            # An annotation more: what is stored then is theirs with that annotation, byte for byte.
            patch = {"metadata": {"annotations": {"zz": "1"}}}
            merge = {"content-type": "application/merge-patch+json"}
            done = await rest.request("PATCH", path, None, json.dumps(patch).encode(), merge)
            assert done.code == 200, (key, done.body)
            stored = await bench.storage.get(key)
            assert stored is not None
            again: Any = envelope.decode(kind, stored.data)
            assert again.metadata.annotations.pop("zz") == "1"
            again.metadata.generation = obj.metadata.generation
            for each in (again, obj):
                del each.metadata.managedFields[:]
            assert envelope.encode(again) == envelope.encode(obj), key
            assert stored.data.startswith(data[: data.index(b"\x12")])


def _path(kind: Kind[Any], namespace: str, name: str) -> str:
    base = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    return (
        f"{base}/namespaces/{namespace}/{kind.plural}/{name}" if namespace else f"{base}/{kind.plural}/{name}"
    )
