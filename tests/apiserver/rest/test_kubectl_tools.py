"""kubectl with what every cluster has, and what people reach for less often: debug, autoscale, expose,
certificate, apply by kustomization and with pruning, older clients' forms.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apiserver.rest.test_certificate_requests import pem
from tests.apiserver.rest.test_kubectl import KUBECTL, Session, namespaced

pytestmark = pytest.mark.skipif(KUBECTL is None, reason="no kubectl on PATH: install one to run this session")
NAMESPACE = "tools"
MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {{name: {name}, labels: {{kept: "yes"}}}}
data: {{a: {value}}}
"""


@pytest.fixture(scope="module")
def kubectl(live: Path) -> Iterator[Session]:
    with namespaced(live, NAMESPACE) as session:
        yield session


def _comes(kubectl: Session, what: str, name: str) -> None:
    kubectl("wait", "--for=create", f"{what}/{name}", "--timeout=100s")


def test_what_every_namespace_has(kubectl: Session) -> None:
    _comes(kubectl, "serviceaccount", "default")
    _comes(kubectl, "configmap", "kube-root-ca.crt")
    published = kubectl.json("get", "configmap", "kube-root-ca.crt")["data"]["ca.crt"]
    trusted = kubectl.json("config", "view", "--raw")["clusters"][0]["cluster"]["certificate-authority-data"]
    assert published == base64.b64decode(trusted).decode()
    assert len(kubectl("create", "token", "default").split(".")) == 3
    found = kubectl.json("get", "service", "kubernetes", "-n", "default")
    assert (found["spec"]["clusterIP"], found["spec"]["ports"][0]["port"]) == ("10.0.0.1", 443)
    slices = kubectl.json(
        "get", "endpointslices", "-n", "default", "-l", "kubernetes.io/service-name=kubernetes"
    )
    assert slices["items"][0]["ports"][0]["port"] == found["spec"]["ports"][0]["targetPort"]
    assert "service/kubernetes" in kubectl("get", "all", "-n", "default")


def test_autoscale_and_scale(kubectl: Session) -> None:
    kubectl("create", "deployment", "web", "--image=pause", "--replicas=1")
    said = kubectl("autoscale", "deployment", "web", "--min=1", "--max=3", "--cpu-percent=50")
    assert said == "horizontalpodautoscaler.autoscaling/web autoscaled\n"
    heading, row = kubectl("get", "hpa").splitlines()
    assert heading.split() == ["NAME", "REFERENCE", "TARGETS", "MINPODS", "MAXPODS", "REPLICAS", "AGE"]
    assert row.split()[:6] == ["web", "Deployment/web", "cpu:", "<unknown>/50%", "1", "3"]
    older = kubectl.json("get", "horizontalpodautoscalers.v1.autoscaling", "web")
    assert (older["apiVersion"], older["spec"]["targetCPUUtilizationPercentage"]) == ("autoscaling/v1", 50)
    assert "Deployment/web" in kubectl("describe", "hpa", "web")
    heading, row = kubectl("get", "deployment", "web", "--subresource=scale").splitlines()
    assert heading.split() == ["NAME", "DESIRED", "AVAILABLE", "AGE"]
    assert row.split()[:2] == ["web", "1"]
    assert kubectl("expose", "deployment", "web", "--port=80") == "service/web exposed\n"
    assert kubectl.json("get", "service", "web")["spec"]["selector"] == {"app": "web"}


def test_debug_shows_the_container_and_does_not_hang(kubectl: Session) -> None:
    kubectl("run", "p", "--image=pause", "--restart=Never")
    kubectl("wait", "--for=condition=Ready", "pod/p", "--timeout=100s")
    said = kubectl.fails("debug", "-i", "p", "--image=tools", "-c", "debugger")
    assert "pods/attach is not emulated" in said or "pods/log is not emulated" in said, said
    status = kubectl.json("get", "pod", "p")["status"]
    (debugger,) = status["ephemeralContainerStatuses"]
    assert (debugger["name"], list(debugger["state"])) == ("debugger", ["running"])
    assert {one["type"]: one["status"] for one in status["conditions"]}["Ready"] == "True"
    assert "not emulated" in kubectl.fails("attach", "p")
    assert "not emulated" in kubectl.fails("port-forward", "p", ":80")


def test_a_request_for_a_certificate(kubectl: Session) -> None:
    spec = {
        "request": base64.b64encode(pem()).decode(),
        # No controller signs for it: the request stays as it is approved.
        "signerName": "example.com/by-hand",
        "usages": ["client auth"],
    }
    document = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}
    kubectl("create", "-f", "-", stdin=json.dumps({**document, "metadata": {"name": "jane"}, "spec": spec}))
    assert kubectl("get", "csr", "jane").split()[-1] == "Pending"
    kubectl("certificate", "approve", "jane")
    assert kubectl("get", "csr", "jane").split()[-1] == "Approved"
    kubectl("delete", "csr", "jane")


def test_kustomize_and_prune(kubectl: Session, tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text("namePrefix: kz-\nresources: [one.yaml]\n")
    (tmp_path / "one.yaml").write_text(MAP.format(name="one", value="b"))
    assert kubectl("apply", "-k", str(tmp_path)) == "configmap/kz-one created\n"
    two = MAP.format(name="one", value="b") + "---" + MAP.format(name="two", value="b")
    kept = ("--prune", "-l", "kept=yes", "--prune-allowlist=core/v1/ConfigMap")
    kubectl("apply", "-f", "-", *kept, stdin=two)
    said = kubectl("apply", "-f", "-", *kept, stdin=MAP.format(name="one", value="c"))
    assert {"configmap/one configured", "configmap/two pruned"} <= set(said.splitlines())
    differs = kubectl.run("diff", "--server-side", "-f", "-", stdin=MAP.format(name="one", value="d"))
    assert differs.returncode == 1
    assert {"-  a: c", "+  a: d"} <= set(differs.stdout.splitlines())


def test_an_unknown_kind(kubectl: Session) -> None:
    document = json.dumps({"apiVersion": "v1", "kind": "Foo", "metadata": {"name": "a"}})
    assert 'no matches for kind "Foo" in version "v1"' in kubectl.fails("create", "-f", "-", stdin=document)
    assert "No resources found" in kubectl.run("get", "crd").stderr


WEBHOOKS = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: w}
webhooks:
- name: w.example.com
  clientConfig: {url: "https://127.0.0.1:1/"}
  admissionReviewVersions: [v1]
  sideEffects: None
"""


def test_an_admission_webhook_is_refused(kubectl: Session) -> None:
    for words in (("create",), ("apply",), ("apply", "--server-side")):
        assert "Nominee has no admission webhooks or policies" in kubectl.fails(
            *words, "-f", "-", stdin=WEBHOOKS
        )
    assert "No resources found" in kubectl.run("get", "validatingwebhookconfigurations").stderr


def test_what_older_clients_ask_for(kubectl: Session) -> None:
    described = kubectl("explain", "deployment.spec.replicas", "--output=plaintext-openapiv2")
    assert "FIELD:    replicas <integer>" in described
    assert "Endpoints is deprecated" in kubectl.run("get", "endpoints").stderr
    assert 'missing unit in duration "5"' in kubectl.fails("get", "--raw", "/version?timeout=5")
