"""kubectl with what controllers make for it: a Service's endpoints."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apiserver.rest.live import eventually
from tests.apiserver.rest.test_kubectl import KUBECTL, Session

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


class Namespaced(Session):
    """A session in a namespace of its own."""

    def run(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return super().run("-n", NAMESPACE, *words, stdin=stdin)


@pytest.fixture(scope="module")
def kubectl(live: Path) -> Iterator[Session]:
    session = Namespaced(live)
    session("create", "namespace", NAMESPACE)
    yield session
    session("delete", "namespace", NAMESPACE, "--wait=false")


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
    eventually(lambda: _ready(kubectl), lambda found: found == ips)
    described = eventually(
        lambda: kubectl("describe", "service", "web"), lambda text: all(f"{ip}:8080" in text for ip in ips)
    )
    assert "Endpoints:" in described
    old = "jsonpath={.subsets[*].addresses[*].ip}"
    eventually(
        lambda: sorted(kubectl("get", "endpoints", "web", "-o", old).split()), lambda found: found == ips
    )
    row = kubectl(*SLICES_OF_WEB, "--no-headers").split()
    assert row[0].startswith("web-")
    assert (row[1:3], sorted(row[3].split(","))) == (["IPv4", "8080"], ips)

    kubectl("scale", "deploy/web", "--replicas=0")
    eventually(lambda: _ready(kubectl), lambda found: not found)
    kubectl("delete", "service", "web")
    eventually(lambda: kubectl(*SLICES_OF_WEB, "-o", "name"), lambda found: not found)


def test_endpoints_of_a_client_are_mirrored(kubectl: Session) -> None:
    kubectl("apply", "-f", "-", stdin=EXTERNAL)
    words = ("get", "endpointslices", "-l", "kubernetes.io/service-name=external")
    address = "jsonpath={.items[*].endpoints[*].addresses[*]}"
    eventually(lambda: kubectl(*words, "-o", address), lambda found: found == "192.0.2.7")
    kubectl("delete", "endpoints", "external")
    eventually(lambda: kubectl(*words, "-o", "name"), lambda found: not found)
