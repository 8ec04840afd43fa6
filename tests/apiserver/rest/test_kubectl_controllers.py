"""kubectl with what controllers make for it: a Service's endpoints, certificates."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from nominee.commands.cluster.kubeconfig import kubeconfig
from tests.apiserver.rest.test_kubectl import KUBECTL, Session, namespaced
from tests.support.eventually import eventually_sync

pytestmark = pytest.mark.skipif(KUBECTL is None, reason="no kubectl on PATH: install one to run this session")
NAMESPACE = "controllers"
SLICES_OF_WEB = ("get", "endpointslices", "-l", "kubernetes.io/service-name=web")
EXTERNAL = """
apiVersion: v1
kind: Service
metadata: {name: external}
spec: {ports: [{port: 443}]}
---
apiVersion: v1
kind: Endpoints
metadata: {name: external}
subsets: [{addresses: [{ip: 192.0.2.7}], ports: [{port: 443}]}]
"""


CSR = """
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: NAME}
spec:
  request: REQUEST
  signerName: kubernetes.io/SIGNER
  expirationSeconds: 3600
  usages: [USAGES]
"""
CLIENT_USAGES = "client auth, digital signature, key encipherment"


@pytest.fixture(scope="module")
def kubectl(live: Path) -> Iterator[Session]:
    with namespaced(live, NAMESPACE) as session:
        yield session
        session("delete", "csr", "--all")


def _ready(kubectl: Session) -> list[str]:
    """Return the ready addresses of the Service `web`."""
    slices = kubectl.json(*SLICES_OF_WEB)["items"]
    rows = [row for each in slices for row in each["endpoints"] or ()]
    return sorted(row["addresses"][0] for row in rows if row["conditions"]["ready"])


def test_an_exposed_deployment_has_endpoints(kubectl: Session) -> None:
    kubectl("create", "deployment", "web", "--image=pause", "--replicas=2")
    assert (
        kubectl("expose", "deployment", "web", "--port=80", "--target-port=8080") == "service/web exposed\n"
    )
    kubectl("rollout", "status", "deploy/web", "--timeout=100s")
    ips = sorted(kubectl("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].status.podIP}").split())
    assert len(ips) == 2
    eventually_sync(lambda: _ready(kubectl), lambda found: found == ips)
    described = eventually_sync(
        lambda: kubectl("describe", "service", "web"), lambda text: all(f"{ip}:8080" in text for ip in ips)
    )
    assert "Endpoints:" in described
    old = "jsonpath={.subsets[*].addresses[*].ip}"
    eventually_sync(
        lambda: sorted(kubectl("get", "endpoints", "web", "-o", old).split()), lambda found: found == ips
    )
    row = kubectl(*SLICES_OF_WEB, "--no-headers").split()
    assert row[0].startswith("web-")
    assert (row[1:3], sorted(row[3].split(","))) == (["IPv4", "8080"], ips)

    kubectl("scale", "deploy/web", "--replicas=0")
    eventually_sync(lambda: _ready(kubectl), lambda found: not found)
    kubectl("delete", "service", "web")
    eventually_sync(lambda: kubectl(*SLICES_OF_WEB, "-o", "name"), lambda found: not found)


def test_endpoints_of_a_client_are_mirrored(kubectl: Session) -> None:
    kubectl("apply", "-f", "-", stdin=EXTERNAL)
    words = ("get", "endpointslices", "-l", "kubernetes.io/service-name=external")
    address = "jsonpath={.items[*].endpoints[*].addresses[*]}"
    eventually_sync(lambda: kubectl(*words, "-o", address), lambda found: found == "192.0.2.7")
    kubectl("delete", "endpoints", "external")
    eventually_sync(lambda: kubectl(*words, "-o", "name"), lambda found: not found)


def _request(
    name: str, signer: str, common: str, group: str, usages: str = CLIENT_USAGES
) -> tuple[str, bytes]:
    """Return a CertificateSigningRequest's manifest, and the key (PEM) that it is for."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([
        x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, group),
        x509.NameAttribute(x509.NameOID.COMMON_NAME, common),
    ])  # fmt: skip
    signed = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, SHA256())
    request = base64.b64encode(signed.public_bytes(Encoding.PEM)).decode()
    manifest = CSR.replace("NAME", name).replace("SIGNER", signer).replace("USAGES", usages)
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return manifest.replace("REQUEST", request), secret


def _certificate(kubectl: Session, name: str) -> bytes:
    path = "jsonpath={.status.certificate}"
    return base64.b64decode(eventually_sync(lambda: kubectl("get", "csr", name, "-o", path), bool))


def test_an_approved_certificate_is_signed_and_lets_in(kubectl: Session, tmp_path: Path) -> None:
    manifest, key = _request("signed", "kube-apiserver-client", "jane", "developers")
    kubectl("create", "-f", "-", stdin=manifest)
    assert kubectl("get", "csr", "signed", "--no-headers").split()[-1] == "Pending"
    kubectl("certificate", "approve", "signed")
    certificate = _certificate(kubectl, "signed")
    assert kubectl("get", "csr", "signed", "--no-headers").split()[-1] == "Approved,Issued"
    made = x509.load_pem_x509_certificate(certificate)
    authority = x509.load_pem_x509_certificate((kubectl.directory / "pki" / "ca.crt").read_bytes())
    made.verify_directly_issued_by(authority)
    assert made.not_valid_after_utc - made.not_valid_before_utc == timedelta(hours=1, minutes=5)

    paths = tmp_path / "jane.crt", tmp_path / "jane.key"
    for path, data in zip(paths, (certificate, key), strict=True):
        path.write_bytes(data)
    config = kubectl.json("config", "view", "--raw")
    config["users"][0]["user"] = {"client-certificate": str(paths[0]), "client-key": str(paths[1])}
    own = tmp_path / "kubeconfig"
    own.write_text(json.dumps(config))
    me = json.loads(kubectl("--kubeconfig", str(own), "auth", "whoami", "-o", "json"))["status"]["userInfo"]
    assert (me["username"], me["groups"]) == ("jane", ["developers", "system:authenticated"])


def test_a_denied_or_refused_request_is_not_signed(kubectl: Session) -> None:
    denied, _ = _request("denied", "kube-apiserver-client", "joe", "developers")
    kubectl("create", "-f", "-", stdin=denied)
    kubectl("certificate", "deny", "denied")
    refused, _ = _request("refused", "kube-apiserver-client", "joe", "developers", "server auth")
    kubectl("create", "-f", "-", stdin=refused)
    kubectl("certificate", "approve", "refused")
    path = "jsonpath={.status.conditions[?(@.type=='Failed')].message}"
    message = eventually_sync(lambda: kubectl("get", "csr", "refused", "-o", path), bool)
    assert message == "invalid usage for client certificate: server auth"
    for name in ("denied", "refused"):
        assert not kubectl("get", "csr", name, "-o", "jsonpath={.status.certificate}")


def test_a_kubelets_certificate_is_approved_by_itself(kubectl: Session, tmp_path: Path) -> None:
    manifest, _ = _request("node-1", "kube-apiserver-client-kubelet", "system:node:node-1", "system:nodes")
    shown = CliRunner().invoke(kubeconfig, ["--dir", str(kubectl.directory), "--node", "node-1"])
    assert shown.exit_code == 0, shown.output
    own = tmp_path / "kubeconfig"
    own.write_text(shown.stdout)
    kubectl("--kubeconfig", str(own), "create", "-f", "-", stdin=manifest)
    made = x509.load_pem_x509_certificate(_certificate(kubectl, "node-1"))
    assert made.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)[0].value == "system:node:node-1"
    condition = kubectl.json("get", "csr", "node-1")["status"]["conditions"][0]
    assert (condition["type"], condition["reason"]) == ("Approved", "AutoApproved")

    other, _ = _request("of-another", "kube-apiserver-client-kubelet", "system:node:other", "system:nodes")
    kubectl("--kubeconfig", str(own), "create", "-f", "-", stdin=other)
    third, _ = _request("third", "kube-apiserver-client-kubelet", "system:node:node-1", "system:nodes")
    kubectl("--kubeconfig", str(own), "create", "-f", "-", stdin=third)
    _certificate(kubectl, "third")
    # A node has no certificate of another node: that request came before the one that is signed.
    assert "conditions" not in kubectl.json("get", "csr", "of-another")["status"]
