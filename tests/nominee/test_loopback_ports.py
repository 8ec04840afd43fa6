"""What another account of this machine can do through the loopback with a cluster of `nominee up`: nothing.

Every port that a process listens on is known here, and refuses a caller without a credential of its own.
"""

from __future__ import annotations

import json
import os
import socket
import ssl
import stat
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc
import pytest
from aetcd.rpc import KVStub, PutRequest, RangeRequest

from nominee.localcluster.credentials.authority import Identity
from nominee.localcluster.credentials.pki import Pki
from nominee.localcluster.etcd.server import SOCKET
from nominee.localcluster.supervisor.directory import StateDirectory
from nominee.machinery.process.serving_port.serving_client import ServingPort, request
from nominee.pb.clusterautoscaler.cloudprovider.v1.externalgrpc import externalgrpc_pb2 as protocol
from nominee.pb.clusterautoscaler.cloudprovider.v1.externalgrpc import externalgrpc_pb2_grpc as protocol_grpc
from tests.localcluster.test_cluster import Cluster
from tests.nominee.test_cli import nominee
from tests.support.eventually import eventually_sync
from tests.support.patience import PATIENCE_SECONDS

GROUPS = """
nodeGroups:
- name: small
  max: 3
  target: 0
  template: {cpu: "4", memory: 16Gi, pods: 110}
"""
GUARDED = (
    "/metrics",
    "/metrics/slis",
    "/failpoints",
    "/debug/queue",
    "/debug/allocations",
    "/debug/state",
    "/stats/summary",
    "/",
)
CLOUD = "/clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider/"
Pem = bytes | None


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of all components."""
    directory = tmp_path_factory.mktemp("loopback")
    groups = directory / "groups.yaml"
    groups.write_text(GROUPS)
    yield Cluster(directory / "cluster", "--nodes", "1", "--node-groups", str(groups))
    nominee("down", "--kill", directory=directory / "cluster")


@pytest.fixture(scope="module")
def pki(cluster: Cluster) -> Pki:
    return Pki(cluster.directory / "pki")


def run_files(cluster: Cluster) -> dict[str, dict[str, Any]]:
    return dict(StateDirectory(cluster.directory).live_run_files())


def listening(pid: int) -> set[str]:
    """The addresses on which a process listens, by the kernel's tables."""
    inodes = set()
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # the process has closed it
            inodes.add(os.readlink(each))
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                host, port = fields[1].split(":")
                # gRPC's listeners have IPv4's addresses in IPv6's form (::ffff:127.0.0.1).
                found.add(f"{socket.inet_ntoa(bytes.fromhex(host[-8:])[::-1])}:{int(port, 16)}")
    return found


def tls_refusal(address: str, shown: tuple[Path, Path] | None) -> str:
    """How a port ends TLS with this client certificate, or "" where it takes it."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if shown is not None:
        context.load_cert_chain(*shown)
    host, _, port = address.rpartition(":")
    try:
        with (
            socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS) as plain,
            context.wrap_socket(plain) as secure,
        ):
            secure.sendall(b"GET /health HTTP/1.0\r\n\r\n")
            # In TLS 1.3 the server refuses after the client's side is done.
            return "" if secure.recv(1) else "closed"
    except OSError as error:
        return str(error) or type(error).__name__


def channel(address: str, authority: Path, certificate: Pem = None, key: Pem = None) -> grpc.Channel:
    return grpc.secure_channel(
        address, grpc.ssl_channel_credentials(authority.read_bytes(), key, certificate)
    )


def code_of(call: Any, message: object) -> str:
    """The gRPC code of a call, OK where it succeeds."""
    try:
        call(message, timeout=PATIENCE_SECONDS)
    except grpc.RpcError as error:
        failed: Any = error
        return str(failed.code().name)
    return "OK"


def test_the_ports_that_are_open_are_those_that_are_tested(cluster: Cluster) -> None:
    for name, document in run_files(cluster).items():
        announced = {document.get(key) for key in ("http", "grpc", "rest", "peer")} - {None}
        assert listening(document["pid"]) == announced, name


def test_serving_ports_want_the_token(cluster: Cluster) -> None:
    serving = {name: each["http"] for name, each in run_files(cluster).items() if "http" in each}
    assert set(serving) == {"apiserver", "scheduler", "controllers", "cloud", "kubelet-0", "autoscaler"}
    for name, address in serving.items():
        stranger, owner = ServingPort(address), ServingPort.of(address, cluster.directory)
        assert owner.token
        for path in ("/healthz", "/livez", "/readyz"):
            assert request(stranger, path).status == 200, (name, path)
        for port in (stranger, ServingPort(address, "wrong")):
            assert {request(port, path).status for path in GUARDED} == {401}, name
        points = json.loads(request(owner, "/failpoints").body)
        point = f"/failpoints/{points[0]['name']}"
        assert request(stranger, point, method="PUT", body="crash").status == 401
        assert request(stranger, point, method="DELETE").status == 401
        assert json.loads(request(owner, point).body)["action"] == ""
        assert request(owner, "/metrics").status == 200


def test_etcd_wants_a_certificate_of_its_own_authority(cluster: Cluster, pki: Pki) -> None:
    etcd = run_files(cluster)["etcd"]
    clients, peers, own = etcd["grpc"], etcd["peer"], pki.etcd.pair("apiserver-etcd-client")
    admin = pki.clients / "admin.crt", pki.clients / "admin.key"
    assert tls_refusal(clients, own) == ""
    assert tls_refusal(clients, None)
    assert tls_refusal(clients, admin), "the cluster's users are not etcd's"
    assert tls_refusal(peers, None)
    assert tls_refusal(peers, admin)
    key = b"/registry/stranger"
    certificate, private = (path.read_bytes() for path in own)
    adminpair = [path.read_bytes() for path in admin]
    with (
        channel(clients, pki.etcd.ca, certificate, private) as good,
        channel(clients, pki.etcd.ca) as bare,
        channel(clients, pki.etcd.ca, *adminpair) as wrong,
        grpc.insecure_channel(clients) as plain,
    ):
        for stranger in (bare, wrong, plain):
            assert code_of(KVStub(stranger).Put, PutRequest(key=key, value=b"x")) != "OK"
            assert code_of(KVStub(stranger).Range, RangeRequest(key=b"/", range_end=b"0")) != "OK"
        assert KVStub(good).Range(RangeRequest(key=key, count_only=True)).count == 0


def test_the_cloud_obeys_the_autoscaler_and_answers_kubelets(cluster: Cluster, pki: Pki) -> None:
    address = run_files(cluster)["cloud"]["grpc"]
    jane = pki.client(Identity("jane", ("system:authenticated",)), now=datetime.now(UTC))  # noqa: TID251
    shown = {
        name: ((pki.clients / f"{name}.crt").read_bytes(), (pki.clients / f"{name}.key").read_bytes())
        for name in ("autoscaler", "kubelets", "scheduler", "admin")
    }
    may = {}
    for name, pair in {**shown, "jane": jane}.items():
        with channel(address, pki.ca, *pair) as opened:
            stub = protocol_grpc.CloudProviderStub(opened)
            may[name] = (
                code_of(stub.NodeGroups, protocol.NodeGroupsRequest()),
                # A group that does not exist: nothing is ordered where that is allowed.
                code_of(stub.NodeGroupIncreaseSize, protocol.NodeGroupIncreaseSizeRequest(id="no", delta=1)),
                code_of(opened.unary_unary(f"{CLOUD}NodeGroups"), b"\xff not protobuf"),
            )
    refused = ("PERMISSION_DENIED",) * 3
    allowed = ("OK", may["admin"][1], "INVALID_ARGUMENT")
    assert may["admin"][1] not in ("OK", "PERMISSION_DENIED", "UNAVAILABLE")
    assert may == {
        "autoscaler": allowed,
        "admin": allowed,
        "kubelets": ("OK", "PERMISSION_DENIED", "INVALID_ARGUMENT"),
        "scheduler": refused,
        "jane": refused,
    }
    with channel(address, pki.ca) as bare, grpc.insecure_channel(address) as plain:
        for stranger in (bare, plain):
            call = protocol_grpc.CloudProviderStub(stranger).NodeGroups
            assert code_of(call, protocol.NodeGroupsRequest()) == "UNAVAILABLE"


def test_what_opens_the_ports_is_the_owners_alone(cluster: Cluster, pki: Pki) -> None:
    secret = [path for path in pki.path.rglob("*") if path.is_file() and path.suffix != ".crt"]
    assert len(secret) > 10
    sockets = [path for path in cluster.directory.rglob("*") if path.is_socket()]
    assert {path.name for path in sockets} >= {SOCKET}
    for path in (*secret, *sockets, cluster.directory / "kubeconfig"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    assert stat.S_IMODE((cluster.directory / "etcd" / "member-data").stat().st_mode) & 0o077 == 0


def test_nominees_commands_have_the_credentials(cluster: Cluster) -> None:
    assert "apiserver.write.before" in cluster("failpoint", "apiserver")
    cluster("failpoint", "scheduler", "scheduler.bind.before", "off")
    cluster("queue")
    # The command waits a second for each answer.
    eventually_sync(
        lambda: {each["healthy"] for each in cluster.json("status")["components"]},
        lambda found: found == {True},
    )
