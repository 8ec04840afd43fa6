"""kubectl with what runs: rollouts, descriptions and their events, usage, what is not emulated, editing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apiserver.rest.live import eviction
from tests.apiserver.rest.test_kubectl import KUBECTL, Session, namespaced
from tests.support.eventually import eventually_sync

pytestmark = pytest.mark.skipif(KUBECTL is None, reason="no kubectl on PATH: install one to run this session")
NAMESPACE = "workloads"
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, annotations: {kubernetes.io/change-cause: first}}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: c, image: "pause:1", resources: {requests: {cpu: 50m, memory: 32Mi}}}]
"""
CLAIM = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: described}
provisioner: delayed.nominee.dev
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], storageClassName: described, resources: {requests: {storage: 1Gi}}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: NAME, labels: {app: solo}}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: c, image: "pause:1", resources: {requests: {cpu: 50m, memory: 32Mi}}}]
"""


@pytest.fixture(scope="module")
def kubectl(live: Path) -> Iterator[Session]:
    with namespaced(live, NAMESPACE) as session:
        yield session


def _status(kubectl: Session) -> str:
    return kubectl("rollout", "status", "deploy/web", "--timeout=100s").splitlines()[-1]


def _images(kubectl: Session) -> set[str]:
    path = "{range .items[*]}{.spec.containers[0].image}{'\\n'}{end}"
    return set(kubectl("get", "pods", "-l", "app=web", "-o", f"jsonpath={path}").split())


def test_a_deployments_way(kubectl: Session) -> None:
    assert kubectl("create", "-f", "-", stdin=DEPLOYMENT) == "deployment.apps/web created\n"
    assert _status(kubectl) == 'deployment "web" successfully rolled out'
    row = kubectl("get", "deploy", "web", "-o", "wide").splitlines()[1].split()
    assert row[:4] == ["web", "3/3", "3", "3"]
    assert row[5:] == ["c", "pause:1", "app=web"]

    assert kubectl("set", "image", "deploy/web", "c=pause:2") == "deployment.apps/web image updated\n"
    kubectl("annotate", "deploy/web", "kubernetes.io/change-cause=second", "--overwrite")
    assert _status(kubectl) == 'deployment "web" successfully rolled out'
    eventually_sync(lambda: _images(kubectl), lambda images: images == {"pause:2"})
    # An annotation is copied to the ReplicaSet, which no rollout waits for.
    revisions = [["REVISION", "CHANGE-CAUSE"], ["1", "first"], ["2", "second"]]
    eventually_sync(
        lambda: kubectl("rollout", "history", "deploy/web").splitlines(),
        lambda lines: [line.split() for line in lines[1:4]] == revisions,
    )
    assert re.search(r"Image:\s+pause:1$", kubectl("rollout", "history", "deploy/web", "--revision=1"), re.M)

    assert kubectl("rollout", "undo", "deploy/web") == "deployment.apps/web rolled back\n"
    assert _status(kubectl) == 'deployment "web" successfully rolled out'
    numbers = [
        line.split()[0] for line in kubectl("rollout", "history", "deploy/web").splitlines()[2:] if line
    ]
    assert numbers == ["2", "3"]
    eventually_sync(lambda: _images(kubectl), lambda images: images == {"pause:1"})

    assert kubectl("rollout", "pause", "deploy/web") == "deployment.apps/web paused\n"
    kubectl("set", "resources", "deploy/web", "--limits=memory=64Mi")
    kubectl("scale", "deploy/web", "--replicas=2")
    kubectl("wait", "--for=jsonpath={.status.replicas}=2", "deploy/web", "--timeout=100s")
    paused = kubectl.json("get", "deploy", "web")
    assert "updatedReplicas" not in paused["status"]
    progressing = {row["type"]: row for row in paused["status"]["conditions"]}["Progressing"]
    assert (progressing["status"], progressing["reason"]) == ("Unknown", "DeploymentPaused")
    assert kubectl("rollout", "resume", "deploy/web") == "deployment.apps/web resumed\n"
    assert _status(kubectl) == 'deployment "web" successfully rolled out'
    limits = "jsonpath={.items[*].spec.containers[0].resources.limits.memory}"
    eventually_sync(
        lambda: kubectl("get", "pods", "-l", "app=web", "-o", limits), lambda text: text == "64Mi 64Mi"
    )
    assert kubectl("rollout", "restart", "deploy/web") == "deployment.apps/web restarted\n"
    assert _status(kubectl) == 'deployment "web" successfully rolled out'
    kubectl("wait", "--for=condition=Available", "deploy/web", "--timeout=100s")

    described = kubectl("describe", "deploy", "web")
    assert re.search(
        r"^Replicas: +2 desired \| 2 updated \| 2 total \| 2 available \| 0 unavailable$", described, re.M
    )
    assert re.search(r"Progressing +True +NewReplicaSetAvailable", described)
    created = re.search(
        r"ScalingReplicaSet .* deployment-controller +Scaled up replica set web-\w+ from 0 to 3", described
    )
    assert created, described
    assert len(kubectl("get", "rs", "-l", "app=web", "-o", "name").split()) == 4


def test_descriptions_and_their_events(kubectl: Session) -> None:
    kubectl("apply", "-f", "-", stdin=CLAIM)
    kubectl("create", "-f", "-", stdin=POD.replace("NAME", "described"))
    kubectl("wait", "--for=condition=Ready", "pod/described", "--timeout=100s")
    pod = eventually_sync(
        lambda: kubectl("describe", "pod", "described"),
        lambda text: "Container started" in text and "Successfully assigned" in text,
    )
    for line in (
        r"Normal +Scheduled .* default-scheduler +Successfully assigned workloads/described to node-[01]",
        r'Normal +Pulled .* kubelet +Container image "pause:1" already present on machine and',
        r"Normal +Created .* kubelet +Container created",
        r"Normal +Started .* kubelet +Container started",
        r"QoS Class: +Burstable",
    ):
        assert re.search(line, pod), pod
    assert re.search(r"Pod/described +Container started", kubectl("events", "--for", "pod/described"))
    wide = kubectl(
        "get", "events", "-o", "wide", "--field-selector", "involvedObject.name=described,reason=Started"
    )
    assert re.search(
        r"Started +pod/described +spec\.containers\{c\} +kubelet, node-[01] +Container started", wide
    ), wide
    node = kubectl("get", "pod", "described", "-o", "jsonpath={.spec.nodeName}")
    assert re.search(r"workloads +described +50m \(\d+%\) +0 \(0%\) +32Mi", kubectl("describe", "node", node))

    claim = eventually_sync(lambda: kubectl("describe", "pvc", "data"), lambda text: "WaitForFirst" in text)
    assert re.search(r"^Status: +Pending$", claim, re.M)
    assert re.search(
        r"WaitForFirstConsumer .* waiting for first consumer to be created before binding", claim
    )
    kubectl("create", "pdb", "guard", "--selector=app=solo", "--min-available=1")
    eventually_sync(
        lambda: kubectl("describe", "pdb", "guard"), lambda text: re.search(r"Total: +1$", text, re.M)
    )
    assert re.search(r"Allowed disruptions: +0$", kubectl("describe", "pdb", "guard"), re.M)
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/described/eviction"
    refused = kubectl.fails("create", "--raw", path, "-f", "-", stdin=json.dumps(eviction("described")))
    assert "Cannot evict pod as it would violate the pod's disruption budget." in refused
    kubectl("delete", "pdb", "guard")
    sets = kubectl("describe", "rs", "-l", "app=web")
    assert re.search(r"^Controlled By: +Deployment/web$", sets, re.M)
    assert re.search(r"SuccessfulCreate .* replicaset-controller +Created pod: web-", sets)
    kubectl("delete", "pod", "described")
    killing = ("get", "events", "--field-selector", "involvedObject.name=described,reason=Killing")
    eventually_sync(lambda: kubectl(*killing), lambda text: "Stopping container c" in text)


def test_usage(kubectl: Session) -> None:
    kubectl("create", "-f", "-", stdin=POD.replace("NAME", "busy"))
    kubectl("annotate", "pod", "busy", "nominee.dev/cpu-usage=123m")
    kubectl("wait", "--for=condition=Ready", "pod/busy", "--timeout=100s")
    busy = eventually_sync(lambda: kubectl.run("top", "pod", "busy").stdout, lambda text: "123m" in text)
    assert re.search(r"^busy +123m +32Mi", busy, re.M)
    assert re.search(r"^busy +c +123m +32Mi", kubectl("top", "pods", "--containers", "-l", "app=solo"), re.M)
    nodes = kubectl("top", "nodes").splitlines()
    assert nodes[0].split() == ["NAME", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)"]
    assert [line.split()[0] for line in nodes[1:]] == ["node-0", "node-1"]
    assert 'podmetrics.metrics.k8s.io "workloads/nope" not found' in kubectl.fails("top", "pod", "nope")
    kubectl("delete", "pod", "busy")


@pytest.mark.parametrize(
    "words",
    [
        ("logs", "-f", "quiet"),
        ("exec", "-i", "quiet", "--", "sh"),
        ("attach", "quiet"),
        ("port-forward", "quiet", ":80"),
        ("cp", "quiet:/etc/hosts", "/dev/null"),
    ],
)
def test_what_is_not_emulated_is_said_at_once(kubectl: Session, words: tuple[str, ...]) -> None:
    if not kubectl("get", "pod", "quiet", "--ignore-not-found"):
        kubectl("create", "-f", "-", stdin=POD.replace("NAME", "quiet"))
        kubectl("wait", "--for=condition=Ready", "pod/quiet", "--timeout=100s")
    assert "is not emulated: Nominee's kubelets run no containers" in kubectl.fails(*words)


def test_edit_replace_and_apply(kubectl: Session, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i \'s/first: "1"/first: "2"/\' "$1"\n')
    editor.chmod(0o755)
    kubectl("create", "configmap", "edited", "--from-literal=first=1")
    kubectl.environment["KUBE_EDITOR"] = str(editor)
    assert kubectl("edit", "configmap", "edited") == "configmap/edited edited\n"
    assert kubectl.json("get", "configmap", "edited")["data"] == {"first": "2"}
    assert kubectl("edit", "configmap", "edited") == ""  # nothing changed: kubectl says so on stderr
    pod = POD.replace("NAME", "replaced")
    kubectl("create", "-f", "-", stdin=pod)
    before = kubectl.json("get", "pod", "replaced")["metadata"]["uid"]
    done = kubectl("replace", "--force", "-f", "-", stdin=pod.replace("50m", "60m"))
    assert done == 'pod "replaced" deleted\npod/replaced replaced\n'
    after = kubectl.json("get", "pod", "replaced")
    assert after["metadata"]["uid"] != before
    assert after["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "60m"

    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"}, "data": {"a": "1"}}
    apply = ("apply", "--server-side", "-f", "-")
    assert kubectl(*apply, "--field-manager=one", stdin=json.dumps(document)) == (
        "configmap/shared serverside-applied\n"
    )
    document["data"] = {"a": "2"}
    conflict = kubectl.fails(*apply, "--field-manager=two", stdin=json.dumps(document))
    assert 'conflict with "one": .data.a' in conflict
    kubectl(*apply, "--field-manager=two", "--force-conflicts", stdin=json.dumps(document))
    fields = kubectl.json("get", "cm", "shared", "--show-managed-fields")["metadata"]["managedFields"]
    assert [row["manager"] for row in fields if "f:data" in row["fieldsV1"]] == ["two"]
    assert kubectl.run("diff", "--server-side", "-f", "-", stdin=json.dumps(document)).returncode in (0, 1)


def test_the_whole_cluster_at_once(kubectl: Session, tmp_path: Path) -> None:
    kubectl("cluster-info", "dump", f"--output-directory={tmp_path}", "--namespaces", NAMESPACE)
    nodes = json.loads((tmp_path / "nodes.json").read_text())
    assert [node["metadata"]["name"] for node in nodes["items"]] == ["node-0", "node-1"]
    dumped = json.loads((tmp_path / NAMESPACE / "deployments.json").read_text())
    assert [each["metadata"]["name"] for each in dumped["items"]] == ["web"]
    everything = kubectl("get", "all")
    assert {"deployment.apps/web", "pod/quiet"} <= {
        line.split()[0] for line in everything.splitlines() if line
    }
    assert "replicas\t<integer>" in kubectl("explain", "deployment.spec", "--recursive")
    assert kubectl("delete", "deploy", "web", "--cascade=foreground", "--timeout=100s") == (
        'deployment.apps "web" deleted\n'
    )
    assert kubectl("get", "rs,pods", "-l", "app=web", "-o", "name") == ""
