"""A cluster that asks who it is, as `nominee up` makes it: real processes, both fronts, kubectl."""

from __future__ import annotations

import json
import os
import shutil
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from click.testing import CliRunner

from nominee.commands.cluster.kubeconfig import kubeconfig
from nominee.localcluster.credentials import identities
from nominee.localcluster.credentials.pki import Pki
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client, connect
from nominee.machinery.client.watches.informer import Informer
from nominee.machinery.patch.patch_type import PatchType
from nominee.machinery.process.run_files import RunFile
from nominee.machinery.runtime.clock import SystemClock
from tests.support.cluster import READY_SECONDS_MAX, Cluster
from tests.support.eventually import eventually
from tests.support.patience import PATIENCE_SECONDS

KUBECTL = shutil.which("kubectl")
FOREIGN_STATUS = 'node "kubelet-0" can only update pod status for pods with spec.nodeName set to itself'
NOMINATION = {"status": {"nominatedNodeName": "node-0"}}


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Etcd, API server, scheduler, a kubelet with two nodes; a pod bound to a node that is not its."""
    cluster = Cluster(tmp_path_factory.mktemp("secure"))
    cluster.arguments("kubelet-0", "--nodes", "2")
    cluster.arguments("scheduler")
    cluster.secure("--disable-admission-plugins", "TaintNodesByCondition")

    async def start() -> None:
        await cluster.start("etcd", "apiserver", "scheduler", "kubelet-0")
        async with cluster.client() as client:
            other = core.Node()
            other.metadata.name = "other"
            await client.create(other)
            await client.create(pod("foreign"))
            await client.bind("default", "foreign", "other")

    anyio.run(start)
    yield cluster
    cluster.close()


def pod(name: str) -> core.Pod:
    made = core.Pod()
    made.metadata.name, made.metadata.namespace = name, "default"
    made.spec.containers.add(name="c", image="pause")
    if name == "foreign":
        # Not the scheduler's.
        made.spec.schedulerName = "no-scheduler"
    return made


def pki_of(cluster: Cluster) -> Pki:
    return Pki(cluster.directory / "pki")


def token_of(cluster: Cluster, name: str) -> str:
    return (pki_of(cluster).clients / f"{name}.token").read_text(encoding="ascii")


class Rest:
    """A REST client with a token, with a client certificate, or without credentials."""

    def __init__(
        self, cluster: Cluster, token: str = "", certificate: tuple[Path, Path] | None = None
    ) -> None:
        self._cluster = cluster
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._tls = ssl.create_default_context(cafile=pki_of(cluster).ca)
        if certificate is not None:
            self._tls.load_cert_chain(*certificate)

    async def __call__(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, Any]:
        """Status code, and the document or text."""
        found = RunFile.read(self._cluster.directory, "apiserver")
        assert found is not None
        sent = None if body is None else json.dumps(body).encode()
        patch = "strategic-merge-patch+" if method == "PATCH" else ""
        kind = {"Content-Type": f"application/{patch}json"}
        request = urllib.request.Request(
            f"https://{found.document['rest']}{path}",
            sent,
            {**self._headers, **kind, **{name.replace("_", "-"): value for name, value in headers.items()}},
            method=method,
        )
        return await anyio.to_thread.run_sync(partial(_ask, request, self._tls))


def admin_of(cluster: Cluster) -> Rest:
    """The cluster's administrator, by certificate."""
    clients = pki_of(cluster).clients
    return Rest(cluster, certificate=(clients / "admin.crt", clients / "admin.key"))


def _ask(request: urllib.request.Request, tls: ssl.SSLContext) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(request, context=tls, timeout=PATIENCE_SECONDS) as answer:
            return answer.status, _read(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, _read(error.read())


def _read(data: bytes) -> Any:
    text = data.decode()
    return json.loads(text) if text.startswith("{") else text


async def refused(code: int, message: str, call: Any) -> None:
    with pytest.raises(StatusError) as error:
        await call
    assert (error.value.code, error.value.message) == (code, message)


async def runs(client: Client, name: str) -> None:
    """A pod is scheduled and run."""
    await client.create(pod(name))
    pods: Informer[core.Pod] = Informer(client, kinds.POD, field_selector=f"metadata.name={name}")
    running = anyio.Event()

    def look(found: core.Pod) -> None:
        if found.status.phase == "Running":
            running.set()

    pods.add_handler(on_add=look, on_update=lambda _, found: look(found))
    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(pods.run)
            await running.wait()
            group.cancel_scope.cancel()


async def test_the_anonymous_user_reaches_little(secure: Cluster) -> None:
    anonymous = Rest(secure)
    # The Service `kubernetes` is written beside requests.
    await eventually(lambda: anonymous("GET", "/readyz"), lambda answer: answer[0] == 200)
    for path in ("/healthz", "/livez", "/readyz", "/version"):
        assert (await anonymous("GET", path))[0] == 200, path
    code, status = await anonymous("GET", "/api/v1/namespaces/default/pods")
    assert (code, status["reason"], status["details"]) == (403, "Forbidden", {"kind": "pods"})
    assert status["message"] == (
        'pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group ""'
        ' in the namespace "default"'
    )
    code, status = await anonymous("GET", "/metrics")
    assert status["message"] == 'forbidden: User "system:anonymous" cannot get path "/metrics"'
    assert (code, status["details"]) == (403, {})
    code, status = await Rest(secure, token="wrong")("GET", "/api/v1/nodes")
    assert (code, status["message"], status["reason"]) == (401, "Unauthorized", "Unauthorized")


async def test_health_by_name(secure: Cluster) -> None:
    admin = admin_of(secure)
    hooks = [
        "start-apiserver-admission-initializer", "generic-apiserver-start-informers",
        "priority-and-fairness-config-consumer", "priority-and-fairness-config-producer",
        "start-system-namespaces-controller", "start-cluster-authentication-info-controller",
        "start-service-ip-repair-controllers", "rbac/bootstrap-roles",
        "scheduling/bootstrap-system-priority-classes", "bootstrap-controller",
    ]  # fmt: skip
    # The Service `kubernetes` is written beside requests.
    await eventually(lambda: admin("GET", "/readyz"), lambda answer: answer[0] == 200)
    for endpoint, own in (
        ("healthz", []),
        ("livez", []),
        ("readyz", ["etcd-readiness", "informer-sync", "shutdown"]),
    ):
        _, text = await admin("GET", f"/{endpoint}?verbose")
        names = {"ping", "log", "etcd", *own, *(f"poststarthook/{hook}" for hook in hooks)}
        lines = text.splitlines()
        assert {line.removeprefix("[+]").removesuffix(" ok") for line in lines[:-1]} == names
        assert lines[-1] == f"{endpoint} check passed"
        assert await admin("GET", f"/{endpoint}/poststarthook/rbac/bootstrap-roles") == (200, "ok")
    code, slis = await admin("GET", "/metrics/slis")
    assert code == 200
    assert 'kubernetes_healthcheck{name="etcd",type="readyz"} 1.0' in slis
    assert (await Rest(secure)("GET", "/livez/etcd"))[0] == 403


async def test_what_a_nodes_kubelet_serves(secure: Cluster) -> None:
    admin, kubelet = admin_of(secure), Rest(secure, token_of(secure, "kubelet-0"))
    proxy = "/api/v1/nodes/node-1/proxy"
    assert await admin("GET", f"{proxy}/healthz") == (200, "ok")
    assert await admin("GET", f"{proxy}/healthz/ping") == (200, "ok")
    _, text = await admin("GET", f"{proxy}/healthz?verbose&exclude=ping")
    assert "[+]ping excluded: ok\n[+]syncloop ok\n" in text
    code, metrics = await admin("GET", f"{proxy}/metrics")
    assert (code, 'kubelet_node_name{node="node-1"} 1.0' in metrics) == (200, True)
    async with secure.client() as client:
        await client.create(pod("proxied"))
        await client.bind("default", "proxied", "node-1")
        clock = SystemClock()
        deadline = clock.monotonic() + PATIENCE_SECONDS
        names: list[str] = []
        while "proxied" not in names:
            assert clock.monotonic() < deadline, names
            code, listed = await admin("GET", f"{proxy}/pods")
            assert (code, listed["kind"], listed["apiVersion"]) == (200, "PodList", "v1")
            names = [item["metadata"]["name"] for item in listed["items"]]
        assert {item["spec"]["nodeName"] for item in listed["items"]} == {"node-1"}
        assert "proxied" not in str(await admin("GET", "/api/v1/nodes/node-0/proxy/pods"))
        await client.delete(kinds.POD, "proxied", "default", grace_period_seconds=0)
    _, summary = await admin("GET", f"{proxy}/stats/summary")
    assert summary["node"]["nodeName"] == "node-1"
    code, metrics = await admin("GET", f"{proxy}/metrics/resource")
    assert (code, "\nresource_scrape_error 0.0\n" in metrics) == (200, True)
    assert await admin("GET", "/api/v1/nodes/https:node-1:10250/proxy/healthz") == (200, "ok")
    assert await admin("GET", f"{proxy}/nope") == (404, "404 page not found\n")
    # Nothing else of the process's port.
    assert (await admin("GET", f"{proxy}/../../failpoints"))[0] == 404
    assert (await admin("POST", f"{proxy}/pods", {}))[0] == 405
    code, status = await admin("GET", "/api/v1/nodes/none/proxy/healthz")
    assert (code, status["message"]) == (404, 'nodes "none" not found')
    code, status = await admin("GET", "/api/v1/nodes/other/proxy/healthz")
    assert (code, status["reason"]) == (503, "ServiceUnavailable")
    assert status["message"] == "error trying to reach service: no kubelet carries node other"
    code, status = await admin("GET", "/api/v1/nodes/a:b:c:d/proxy/healthz")
    assert (code, status["message"]) == (400, 'invalid node request "a:b:c:d"')
    for verb, method in (("get", "GET"), ("create", "POST")):
        code, status = await kubelet(method, f"{proxy}/healthz")
        assert (code, status["details"]) == (403, {"name": "node-1", "kind": "nodes"})
        assert f'cannot {verb} resource "nodes/proxy" in API group ""' in status["message"]


async def test_parts_of_a_claims_status(secure: Cluster) -> None:
    """DRAResourceClaimGranularStatusAuthorization, through both fronts."""
    admin = admin_of(secure)
    rbac, name = "/apis/rbac.authorization.k8s.io/v1", "claims-status"
    rules = [
        {"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims"], "verbs": ["get"]},
        {"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims/status"], "verbs": ["patch"]},
        {
            "apiGroups": ["resource.k8s.io"],
            "resources": ["resourceclaims/driver"],
            "resourceNames": ["d.example.com"],
            "verbs": ["associated-node:patch"],
        },
    ]
    assert (await admin("POST", f"{rbac}/clusterroles", {"metadata": {"name": name}, "rules": rules}))[
        0
    ] == 201
    subjects = [{"kind": "ServiceAccount", "name": "driver", "namespace": "default"}]
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": subjects}
    assert (await admin("POST", f"{rbac}/clusterrolebindings", binding))[0] == 201
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    await admin("POST", accounts, {"metadata": {"name": "driver"}})
    spec: dict[str, Any] = {}
    _, token = await admin("POST", f"{accounts}/driver/token", {"spec": spec})
    anywhere = Rest(secure, token["status"]["token"])
    spec["boundObjectRef"] = {"apiVersion": "v1", "kind": "Node", "name": "node-0"}
    _, token = await admin("POST", f"{accounts}/driver/token", {"spec": spec})
    on_node = Rest(secure, token["status"]["token"])

    claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
    wanted = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
    assert (await admin("POST", claims, {"metadata": {"name": "c"}, "spec": wanted}))[0] == 201
    result = {"request": "r", "driver": "d.example.com", "pool": "p", "device": "a"}
    where = [{"key": "metadata.name", "operator": "In", "values": ["node-0"]}]
    allocation = {
        "devices": {"results": [result]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": where}]},
    }
    allocated = {"status": {"allocation": allocation}}
    code, status = await on_node("PATCH", f"{claims}/c/status", allocated)
    assert (code, status["details"]["causes"][0]["field"]) == (422, "status")
    assert 'requires resource="resourceclaims/binding", verb="patch" permission' in status["message"]
    # The scheduler's own role has it; over gRPC.
    scheduler = await connect(secure.directory, credential="scheduler", limit_seconds=READY_SECONDS_MAX)
    async with scheduler:
        patched = await scheduler.patch(kinds.RESOURCE_CLAIM, "c", "default", allocated, subresource="status")
        assert patched.status.allocation.devices.results[0].device == "a"
        ready = {"driver": "d.example.com", "pool": "p", "device": "a"}
        with pytest.raises(StatusError, match='"resourceclaims/driver", verb="\\[arbitrary-node:patch\\]"'):
            await scheduler.patch(
                kinds.RESOURCE_CLAIM, "c", "default", {"status": {"devices": [ready]}}, subresource="status"
            )
    devices = {"status": {"devices": [ready]}}
    code, status = await anywhere("PATCH", f"{claims}/c/status", devices)
    assert (code, status["details"]["causes"][0]["field"]) == (422, "status.devices")
    code, found = await on_node("PATCH", f"{claims}/c/status", devices)
    assert (code, found["status"]["devices"][0]["device"]) == (200, "a")
    # A deallocation takes the devices' status with it, and needs no permission of the driver.
    async with await connect(secure.directory, credential="scheduler") as scheduler:
        gone = {"status": {"allocation": None}}
        freed = await scheduler.patch(
            kinds.RESOURCE_CLAIM, "c", "default", gone, patch_type=PatchType.MERGE, subresource="status"
        )
        assert not freed.status.devices


async def test_a_kubelet_over_rest(secure: Cluster) -> None:
    kubelet = Rest(secure, token_of(secure, "kubelet-0"))
    assert (await kubelet("GET", "/api/v1/nodes/node-1"))[0] == 200
    code, status = await kubelet("GET", "/api/v1/nodes/other")
    assert code == 403
    assert "node 'kubelet-0' cannot read 'other', only its own Node object" in status["message"]
    pods = "/api/v1/namespaces/default/pods"
    binding = {"metadata": {"name": "foreign"}, "target": {"kind": "Node", "name": "node-0"}}
    code, status = await kubelet("POST", f"{pods}/foreign/binding", binding)
    assert (code, status["message"]) == (
        403,
        'pods "foreign" is forbidden: User "system:node:kubelet-0" cannot create resource "pods/binding"'
        ' in API group "" in the namespace "default"',
    )
    code, status = await kubelet("PATCH", f"{pods}/foreign/status", NOMINATION)
    assert (code, status["message"]) == (403, f'pods "foreign" is forbidden: {FOREIGN_STATUS}')
    code, _ = await kubelet("DELETE", f"{pods}/foreign")
    assert code == 403


async def test_a_kubelet_over_grpc(secure: Cluster) -> None:
    async with await connect(
        secure.directory, credential="kubelet-0", limit_seconds=READY_SECONDS_MAX
    ) as kubelet:
        assert (await kubelet.get(kinds.NODE, "node-1")).metadata.name == "node-1"
        await refused(
            403,
            'pods "foreign" is forbidden: User "system:node:kubelet-0" cannot create resource "pods/binding"'
            ' in API group "" in the namespace "default"',
            kubelet.bind("default", "foreign", "node-0"),
        )
        await refused(
            403,
            f'pods "foreign" is forbidden: {FOREIGN_STATUS}',
            kubelet.patch(kinds.POD, "foreign", "default", NOMINATION, subresource="status"),
        )
        with pytest.raises(StatusError, match='cannot list resource "secrets"'):
            await kubelet.list(kinds.SECRET)
    async with await connect(secure.directory, credential="scheduler") as scheduler:
        assert (await scheduler.list(kinds.POD)).items
        await refused(
            403,
            'pods is forbidden: User "system:kube-scheduler" cannot create resource "pods" in API group ""'
            ' in the namespace "default"',
            scheduler.create(pod("x")),
        )
        with pytest.raises(StatusError) as unwatched:
            async for _ in scheduler.watch(kinds.SECRET, resource_version="0"):
                pass
        assert unwatched.value.code == 403


async def test_one_nodes_certificate(secure: Cluster, tmp_path: Path) -> None:
    now = datetime.fromtimestamp(SystemClock().now(), UTC)
    files = tmp_path / "node.crt", tmp_path / "node.key"
    for path, data in zip(files, pki_of(secure).client(identities.of_node("node-0"), now=now), strict=True):
        path.write_bytes(data)
    node = Rest(secure, certificate=files)
    assert (await node("GET", "/api/v1/nodes/node-0"))[0] == 200
    assert (await node("GET", "/api/v1/nodes/node-1"))[0] == 403
    assert (await node("GET", "/api/v1/pods"))[0] == 403
    assert (await node("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-0"))[0] == 200
    code, status = await node(
        "PATCH", "/api/v1/nodes/node-0", {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}
    )
    assert (code, status["message"]) == (
        403,
        'nodes "node-0" is forbidden: node "node-0" is not allowed to modify taints',
    )
    admin = admin_of(secure)
    review = {"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"}
    where = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    code, review_reply = await admin("POST", where, review)
    assert (code, review_reply["status"]["userInfo"]["username"]) == (201, "kubernetes-admin")
    code, review_reply = await admin("POST", where, review, Impersonate_User="jane", Impersonate_Group="dev")
    assert review_reply["status"]["userInfo"] == {
        "username": "jane",
        "groups": ["dev", "system:authenticated"],
    }
    code, review_reply = await node("POST", where, review, Impersonate_User="jane")
    assert code == 403


async def test_a_service_accounts_token(secure: Cluster) -> None:
    admin = admin_of(secure)
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    await admin("POST", accounts, {"metadata": {"name": "robot"}})
    asked = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": {}}
    code, made = await admin("POST", f"{accounts}/robot/token", asked)
    assert (code, made["spec"]["expirationSeconds"]) == (201, 3600)
    robot = Rest(secure, made["status"]["token"])
    # The account of a token is looked for in the watch cache.
    code, status = await eventually(lambda: robot("GET", "/api/v1/nodes"), lambda answer: answer[0] != 401)
    assert code == 403
    assert 'User "system:serviceaccount:default:robot" cannot list resource "nodes"' in status["message"]
    assert (await robot("GET", "/apis"))[0] == 200
    short = {**asked, "spec": {"expirationSeconds": 5}}
    for path in ("/.well-known/openid-configuration", "/openid/v1/jwks"):
        assert (await Rest(secure)("GET", path))[0] == 403
    code, issuer = await robot("GET", "/.well-known/openid-configuration")
    assert (code, issuer["issuer"]) == (200, "https://kubernetes.default.svc.cluster.local")
    _, keys = await robot("GET", f"/{issuer['jwks_uri'].partition('//')[2].partition('/')[2]}")
    assert keys["keys"][0]["kty"] == "EC"
    code, status = await admin("POST", f"{accounts}/robot/token", short)
    assert (code, status["message"]) == (
        422,
        'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 5:'
        " may not specify a duration less than 10 minutes",
    )
    # A node may only for an account of a pod of its own.
    code, status = await Rest(secure, token_of(secure, "kubelet-0"))("POST", f"{accounts}/robot/token", asked)
    assert (code, "no relationship found" in status["message"]) == (403, True)
    await admin("DELETE", f"{accounts}/robot")
    await eventually(lambda: robot("GET", "/apis"), lambda answer: answer[0] == 401)


async def test_all_goes_on_when_the_server_is_killed(secure: Cluster) -> None:
    before = {path: path.read_bytes() for path in pki_of(secure).path.rglob("*") if path.is_file()}
    async with secure.client() as client:
        await runs(client, "first")
        secure.kill("apiserver")
        await secure.start("apiserver")
        async with secure.client() as again:
            await runs(again, "second")
    # Kubeconfigs may name another port.
    after = {path: path.read_bytes() for path in before}
    assert {
        path.name for path in before if before[path] != after[path] and path.suffix != ".kubeconfig"
    } == set()
    assert "orbidden" not in secure.log("scheduler") + secure.log("kubelet-0")


@pytest.mark.skipif(KUBECTL is None, reason="there is no kubectl on this machine")
async def test_kubectl(secure: Cluster, tmp_path: Path) -> None:
    environment = {**os.environ, "KUBECONFIG": str(secure.directory / "kubeconfig"), "HOME": str(tmp_path)}

    async def kubectl(*words: str, stdin: str = "") -> tuple[int, str]:
        def run() -> tuple[int, str]:
            done = subprocess.run(
                [KUBECTL or "", *words],
                input=stdin,
                capture_output=True,
                text=True,
                env=environment,
                check=False,
                timeout=PATIENCE_SECONDS,
            )
            return done.returncode, done.stdout + done.stderr

        return await anyio.to_thread.run_sync(run)

    assert "kubernetes-admin" in (await kubectl("auth", "whoami"))[1]
    token = f"--token={token_of(secure, 'scheduler')}"
    bare = ("--kubeconfig=/dev/null", f"--server=https://{secure.run_file('apiserver').document['rest']}")
    trusted = (*bare, f"--certificate-authority={pki_of(secure).ca}")
    assert "system:kube-scheduler" in (await kubectl("auth", "whoami", *trusted, token))[1]
    assert (await kubectl("auth", "can-i", "create", "pods"))[1] == "yes\n"
    code, said = await kubectl("auth", "can-i", "list", "pods", "--as=jane")
    assert (code, said) == (1, "no\n")
    code, said = await kubectl("get", "pods", "--as=jane")
    assert (code, said) == (
        1,
        'Error from server (Forbidden): pods is forbidden: User "jane" cannot list resource "pods"'
        ' in API group "" in the namespace "default"\n',
    )
    code, said = await kubectl("create", "rolebinding", "devs", "--clusterrole=view", "--group=dev")
    assert code == 0, said
    assert (await kubectl("get", "pods", "--as=jane", "--as-group=dev"))[0] == 0
    listed = (await kubectl("auth", "can-i", "--list", "--as=jane", "--as-group=dev"))[1]
    assert "pods/log" in listed
    made = CliRunner().invoke(kubeconfig, ["--dir", str(secure.directory), "--user=joe", "--group=dev"])
    own = tmp_path / "joe.yaml"
    own.write_text(made.output)
    assert "joe" in (await kubectl("auth", "whoami", f"--kubeconfig={own}"))[1]
    role = json.dumps(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": "own", "namespace": "default"},
            "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}],
        }
    )
    code, said = await kubectl("auth", "reconcile", "-f", "-", stdin=role)
    assert "role.rbac.authorization.k8s.io/own reconciled" in said, said
    code, said = await kubectl("auth", "reconcile", "-f", "-", "--as=jane", "--as-group=dev", stdin=role)
    assert code == 1
    assert "forbidden" in said
