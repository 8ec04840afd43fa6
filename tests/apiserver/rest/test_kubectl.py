"""A session with kubectl against a cluster of real processes, by the kubeconfig that the cluster writes."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.eventually import eventually_sync
from tests.support.patience import PATIENCE_SECONDS

KUBECTL = shutil.which("kubectl")
pytestmark = pytest.mark.skipif(KUBECTL is None, reason="no kubectl on PATH: install one to run this session")
LIMIT_SECONDS = PATIENCE_SECONDS
POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}, labels: {{app: {app}}}}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: c
    image: pause
    resources: {{requests: {{cpu: {cpu}, memory: 64Mi}}, limits: {{cpu: {cpu}, memory: 64Mi}}}}
"""
REPLICA_SET = """
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: c, image: pause, resources: {requests: {cpu: 100m}}}]
"""


class Session:
    """kubectl with a cluster's kubeconfig, and a cache of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.commands = 0
        self.environment = {**os.environ, "KUBECONFIG": str(directory / "kubeconfig"), "HOME": str(directory)}

    def run(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        assert KUBECTL is not None
        self.commands += 1
        return subprocess.run(
            [KUBECTL, *words],
            input=stdin,
            capture_output=True,
            text=True,
            env=self.environment,
            timeout=LIMIT_SECONDS,
            check=False,
        )

    def __call__(self, *words: str, stdin: str = "") -> str:
        """What a command that succeeds prints."""
        done = self.run(*words, stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(words)}: {done.stderr}"
        return done.stdout

    def fails(self, *words: str, stdin: str = "") -> str:
        """What a command that fails says."""
        done = self.run(*words, stdin=stdin)
        assert done.returncode != 0, done.stdout
        return done.stderr

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "-o", "json"))

    def pod(self, name: str, *, app: str = "p", cpu: str = "100m") -> None:
        """A pod that runs."""
        self("apply", "-f", "-", stdin=POD.format(name=name, app=app, cpu=cpu))
        self("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=100s")


class Namespaced(Session):
    """A session in a namespace of its own."""

    def __init__(self, directory: Path, namespace: str) -> None:
        super().__init__(directory)
        self.namespace = namespace

    def run(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return super().run("-n", self.namespace, *words, stdin=stdin)


@contextmanager
def namespaced(live: Path, namespace: str) -> Iterator[Session]:
    """A session in a namespace that is made for it, and deleted after it."""
    session = Namespaced(live, namespace)
    session("create", "namespace", namespace)
    yield session
    session("delete", "namespace", namespace, "--wait=false")
    print(f"{session.commands} commands")


@pytest.fixture(scope="module")
def kubectl(live: Path) -> Iterator[Session]:
    session = Session(live)
    yield session
    print(f"{session.commands} commands")


def test_component_statuses(kubectl: Session) -> None:
    lines = kubectl("get", "cs").splitlines()
    assert [line.split() for line in lines] == [
        ["NAME", "STATUS", "MESSAGE", "ERROR"],
        ["controller-manager", "Healthy", "ok"],
        ["scheduler", "Healthy", "ok"],
        ["etcd-0", "Healthy", "ok"],
    ]


def test_what_there_is(kubectl: Session) -> None:
    version = json.loads(kubectl("version", "-o", "json"))
    assert version["serverVersion"]["gitVersion"].startswith("v1.")
    assert "Kubernetes control plane" in kubectl("cluster-info")
    resources = kubectl("api-resources")
    line = re.search(r"^poddisruptionbudgets +pdb +policy/v1 +true +PodDisruptionBudget$", resources, re.M)
    assert line, resources
    assert kubectl("api-resources", "--namespaced=false", "-o", "name").split().count("nodes") == 1
    assert {"v1", "apps/v1", "policy/v1", "events.k8s.io/v1"} <= set(kubectl("api-versions").split())
    # The API server of this cluster was killed a moment ago, and serves before it is ready.
    eventually_sync(lambda: kubectl.run("get", "--raw", "/readyz").stdout, lambda text: text == "ok")
    assert kubectl("get", "--raw", "/healthz") == "ok"
    assert "[+]etcd ok" in kubectl("get", "--raw", "/readyz?verbose")
    assert json.loads(kubectl("get", "--raw", "/apis"))["kind"] == "APIGroupList"
    assert "the server doesn't have a resource type" in kubectl.fails("get", "foos")


def test_explain(kubectl: Session) -> None:
    assert "FIELD: nominatedNodeName <string>" in kubectl("explain", "pod.status.nominatedNodeName")
    assert "disruptionsAllowed" in kubectl("explain", "pdb.status")
    assert "disableResizePreemption" in kubectl("explain", "node.spec.podPreemptionPolicy")
    assert re.search(r"containers\t<\[\]Container> -required-", kubectl("explain", "pod", "--recursive"))
    assert 'field "bogus" does not exist' in kubectl.fails("explain", "pod.bogus")


def test_auth(kubectl: Session) -> None:
    assert kubectl("auth", "can-i", "create", "pods") == "yes\n"
    assert "system:masters" in kubectl("auth", "whoami")
    assert "[*]" in kubectl("auth", "can-i", "--list")


def test_tables(kubectl: Session) -> None:
    kubectl.pod("t1", app="table")
    head, row = kubectl("get", "pod", "t1", "-o", "wide").splitlines()
    assert head.split("  ")[-1].strip() == "READINESS GATES"
    assert "NOMINATED NODE" in head
    assert re.fullmatch(r"t1 +1/1 +Running +0 +\d+s +10\.\S+ +node-[01] +<none> +<none>", row)
    head, *rows = kubectl("get", "nodes").splitlines()
    assert head.split() == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert [row.split()[0] for row in rows] == ["node-0", "node-1"]
    kubectl("wait", "--for=condition=Ready", "nodes", "--all", "--timeout=100s")
    assert [row.split()[1] for row in kubectl("get", "nodes", "--no-headers").splitlines()] == ["Ready"] * 2
    assert "INTERNAL-IP" in kubectl("get", "nodes", "-o", "wide")
    assert "kube-system" in kubectl("get", "ns")
    assert "PREEMPTIONPOLICY" in kubectl("get", "pc")
    # A kubelet's first lease comes after its node.
    eventually_sync(lambda: "node-0" in kubectl("get", "leases", "-n", "kube-node-lease"))
    assert kubectl("get", "pods", "-A").splitlines()[0].startswith("NAMESPACE")
    both = kubectl("get", "pods,nodes")
    assert "pod/t1" in both
    assert "node/node-1" in both
    assert "app=table" in kubectl("get", "pods", "--show-labels")
    assert kubectl("get", "pods", "-L", "app").splitlines()[1].split()[-1] == "table"
    assert kubectl("get", "pod", "t1", "--no-headers").split()[0] == "t1"


def test_outputs_and_selectors(kubectl: Session) -> None:
    kubectl.pod("o1", app="out")
    kubectl.pod("o2", app="out")
    assert kubectl("get", "pods", "-l", "app=out", "-o", "name") == "pod/o1\npod/o2\n"
    assert kubectl("get", "pods", "-l", "app in (out,x)", "--chunk-size=1", "-o", "name").count("\n") == 2
    assert kubectl("get", "pods", "-l", "app!=out", "-o", "name").count("pod/o") == 0
    nodes = kubectl("get", "pods", "-l", "app=out", "-o", "jsonpath={.items[*].spec.nodeName}").split()
    assert len(nodes) == 2
    found = kubectl("get", "pods", "--field-selector", f"spec.nodeName={nodes[0]}", "-o", "name").split()
    assert "pod/o1" in found
    assert "pod/o1" not in kubectl("get", "pods", "--field-selector=status.phase=Failed", "-o", "name")
    columns = "custom-columns=N:.metadata.name,NNN:.status.nominatedNodeName"
    assert re.search(r"o1 +<none>", kubectl("get", "pods", "-o", columns))
    names = kubectl("get", "pods", "-l", "app=out", "--sort-by=.metadata.name", "--no-headers").splitlines()
    assert [line.split()[0] for line in names] == ["o1", "o2"]
    assert kubectl.json("get", "pod", "o1")["kind"] == "Pod"
    assert "  name: o1\n" in kubectl("get", "pod", "o1", "-o", "yaml")
    assert kubectl("get", "pod", "nope", "--ignore-not-found") == ""
    assert 'pods "nope" not found' in kubectl.fails("get", "pod", "nope")
    assert "field label not supported" in kubectl.fails("get", "pods", "--field-selector", "spec.foo=1")
    assert json.loads(kubectl("get", "--raw", "/api/v1/namespaces/default/pods?limit=1"))["kind"] == "PodList"


def test_create_apply_and_replace(kubectl: Session) -> None:
    manifest = POD.format(name="c1", app="create", cpu="100m")
    assert kubectl("create", "-f", "-", "--dry-run=server", "-o", "name", stdin=manifest) == "pod/c1\n"
    assert 'pods "c1" not found' in kubectl.fails("get", "pod", "c1")
    assert kubectl("create", "-f", "-", stdin=manifest) == "pod/c1 created\n"
    assert "AlreadyExists" in kubectl.fails("create", "-f", "-", stdin=manifest)
    unknown = manifest.replace("terminationGracePeriodSeconds", "graceSeconds").replace("c1", "c2")
    assert 'unknown field "spec.graceSeconds"' in kubectl.fails("create", "-f", "-", stdin=unknown)
    assert kubectl("create", "--validate=false", "-f", "-", stdin=unknown) == "pod/c2 created\n"
    labelled = manifest.replace("app: create", "app: changed")
    assert kubectl("apply", "-f", "-", stdin=labelled) == "pod/c1 configured\n"
    assert kubectl("apply", "-f", "-", stdin=labelled) == "pod/c1 unchanged\n"
    # No other client writes it any more; `diff` reads it twice.
    kubectl("wait", "--for=condition=Ready", "pod/c1", "--timeout=100s")
    assert kubectl.run("diff", "-f", "-", stdin=labelled).returncode == 0
    changed = kubectl.run("diff", "-f", "-", stdin=labelled.replace("changed", "again"))
    assert changed.returncode == 1
    assert "again" in changed.stdout
    assert "may not change fields" in kubectl.fails(
        "apply", "-f", "-", stdin=labelled.replace("100m", "200m")
    )
    live = kubectl.json("get", "pod", "c1")
    live["metadata"]["annotations"]["by"] = "replace"
    assert kubectl("replace", "-f", "-", stdin=json.dumps(live)) == "pod/c1 replaced\n"
    assert "the object has been modified" in kubectl.fails("replace", "-f", "-", stdin=json.dumps(live))
    assert kubectl("run", "r1", "--image=pause", "--restart=Never") == "pod/r1 created\n"


CONFIG_MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {{name: {name}}}
data: {{{data}}}
"""


def managers(kubectl: Session, name: str) -> list[tuple[str, str]]:
    document = kubectl.json("get", "configmap", name, "--show-managed-fields")
    entries = document["metadata"].get("managedFields", [])
    return sorted((entry["manager"], entry["operation"]) for entry in entries)


def test_server_side_apply(kubectl: Session) -> None:
    mine = CONFIG_MAP.format(name="ssa", data="a: '1', b: '1'")
    ssa = ("apply", "--server-side", "-f", "-")
    assert kubectl(*ssa, stdin=mine) == "configmap/ssa serverside-applied\n"
    assert managers(kubectl, "ssa") == [("kubectl", "Apply")]
    assert "managedFields" not in kubectl("get", "configmap", "ssa", "-o", "yaml")
    theirs = CONFIG_MAP.format(name="ssa", data="b: '2'")
    refused = kubectl.fails(*ssa, "--field-manager=other", stdin=theirs)
    assert 'Apply failed with 1 conflict: conflict with "kubectl": .data.b' in refused
    done = kubectl.run(
        "diff", "--server-side", "--force-conflicts", "--field-manager=other", "-f", "-", stdin=theirs
    )
    assert done.returncode == 1, done.stderr
    assert '+  b: "2"' in done.stdout
    assert kubectl.json("get", "configmap", "ssa")["data"] == {"a": "1", "b": "1"}
    kubectl(*ssa, "--field-manager=other", "--force-conflicts", stdin=theirs)
    assert kubectl.json("get", "configmap", "ssa")["data"] == {"a": "1", "b": "2"}
    assert managers(kubectl, "ssa") == [("kubectl", "Apply"), ("other", "Apply")]
    unknown = mine.replace("\ndata:", "\nbogus: 1\ndata:")
    assert ".bogus: field not declared in schema" in kubectl.fails(*ssa, stdin=unknown)


def test_from_client_side_to_server_side_apply(kubectl: Session) -> None:
    kubectl("apply", "-f", "-", stdin=CONFIG_MAP.format(name="csa", data="a: '1', b: '1'"))
    assert managers(kubectl, "csa") == [("kubectl-client-side-apply", "Update")]
    assert 'a: "1"' in kubectl("apply", "view-last-applied", "configmap/csa")
    changed = CONFIG_MAP.format(name="csa", data="a: '2'")
    kubectl("apply", "--server-side", "-f", "-", stdin=changed)
    assert managers(kubectl, "csa") == [("kubectl", "Apply"), ("kubectl-last-applied", "Apply")]
    assert kubectl.json("get", "configmap", "csa")["data"] == {"a": "2"}
    assert 'a: "2"' in kubectl("apply", "view-last-applied", "configmap/csa")
    kubectl("label", "configmap", "csa", "l=v")
    assert ("kubectl-label", "Update") in managers(kubectl, "csa")


def test_create_by_words(kubectl: Session) -> None:
    """These come as protobuf."""
    assert kubectl("create", "ns", "words") == "namespace/words created\n"
    assert kubectl("create", "configmap", "cm", "-n", "words", "--from-literal=a=b") == (
        "configmap/cm created\n"
    )
    assert kubectl.json("get", "cm", "cm", "-n", "words")["data"] == {"a": "b"}
    kubectl("create", "pdb", "b", "-n", "words", "--selector=app=x", "--min-available=1")
    assert kubectl("get", "pdb", "-n", "words").splitlines()[1].split()[:3] == ["b", "1", "N/A"]
    kubectl("create", "priorityclass", "high", "--value=7")
    assert kubectl.json("get", "pc", "high")["value"] == 7
    kubectl("create", "secret", "generic", "s", "-n", "words", "--from-literal=k=v")
    assert kubectl.json("get", "secret", "s", "-n", "words")["data"] == {"k": "dg=="}
    kubectl("create", "serviceaccount", "robot", "-n", "words")
    kubectl("create", "quota", "q", "-n", "words", "--hard=pods=1")
    kubectl("create", "deployment", "web", "-n", "words", "--image=pause", "--replicas=2")
    deployment = kubectl.json("get", "deploy", "web", "-n", "words")
    assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": "25%", "maxUnavailable": "25%"}
    assert re.search(r"^web +\d/2 ", kubectl("get", "deploy", "-n", "words"), re.M)
    assert "deployment.apps/web" in kubectl("get", "all", "-n", "words")
    assert kubectl("set", "resources", "deploy/web", "-n", "words", "--requests=cpu=1m").endswith("updated\n")
    assert kubectl("delete", "pc", "high") == 'priorityclass.scheduling.k8s.io "high" deleted\n'
    assert "deleted" in kubectl("delete", "ns", "words", "--timeout=100s")
    assert "not found" in kubectl.fails("get", "ns", "words")


def test_label_annotate_and_patch(kubectl: Session) -> None:
    kubectl.pod("l1", app="label")
    assert kubectl("label", "pod", "l1", "x=y") == "pod/l1 labeled\n"
    assert "already has a value" in kubectl.fails("label", "pod", "l1", "x=z")
    assert kubectl("label", "pod", "l1", "x=z", "--overwrite") == "pod/l1 labeled\n"
    assert kubectl("label", "pod", "l1", "x-") == "pod/l1 unlabeled\n"
    assert kubectl("annotate", "pod", "l1", "a=b") == "pod/l1 annotated\n"
    patches = {
        "strategic": '{"metadata":{"labels":{"s":"1"}}}',
        "merge": '{"metadata":{"labels":{"m":"1"}}}',
        "json": '[{"op":"add","path":"/metadata/labels/j","value":"1"}]',
    }
    for kind, patch in patches.items():
        assert kubectl("patch", "pod", "l1", "--type", kind, "-p", patch) == "pod/l1 patched\n"
    labels = kubectl.json("get", "pod", "l1")["metadata"]["labels"]
    assert labels == {"app": "label", "s": "1", "m": "1", "j": "1"}
    wrong = kubectl.fails("patch", "pod", "l1", "--type=json", "-p", '[{"op":"remove","path":"/x"}]')
    assert "the server rejected our request" in wrong
    done = kubectl(
        "patch", "pod", "l1", "--subresource=status", "--type=merge", "-p", '{"status":{"message":"m"}}'
    )
    assert done == "pod/l1 patched\n"


def test_resize(kubectl: Session) -> None:
    kubectl.pod("z1", app="resize")
    resources = {"requests": {"cpu": "200m", "memory": "64Mi"}, "limits": {"cpu": "200m", "memory": "64Mi"}}
    patch = json.dumps({"spec": {"containers": [{"name": "c", "resources": resources}]}})
    assert kubectl("patch", "pod", "z1", "--subresource=resize", "-p", patch) == "pod/z1 patched\n"
    path = "{.status.containerStatuses[0].resources.requests.cpu}"
    kubectl("wait", f"--for=jsonpath={path}=200m", "pod/z1", "--timeout=100s")
    assert kubectl.json("get", "pod", "z1", "--subresource=resize")["metadata"]["name"] == "z1"
    eventually_sync(lambda: "ResizeCompleted" in kubectl("events", "--for", "pod/z1"))


def test_nodes(kubectl: Session) -> None:
    assert kubectl("cordon", "node-1") == "node/node-1 cordoned\n"
    assert "Ready,SchedulingDisabled" in kubectl("get", "node", "node-1")
    assert kubectl("cordon", "node-1") == "node/node-1 already cordoned\n"
    assert kubectl("uncordon", "node-1") == "node/node-1 uncordoned\n"
    assert kubectl("taint", "node", "node-1", "a=b:NoSchedule") == "node/node-1 tainted\n"
    assert "already has" in kubectl.fails("taint", "node", "node-1", "a=b:NoSchedule")
    assert kubectl("taint", "node", "node-1", "a-") == "node/node-1 untainted\n"
    # A kubelet's first lease comes after its node.
    described = eventually_sync(
        lambda: kubectl("describe", "node", "node-0"), lambda text: "HolderIdentity:  node-0" in text
    )
    assert re.search(r"^Allocatable:", described, re.M)
    assert "Non-terminated Pods:" in described


def test_describe_and_events(kubectl: Session) -> None:
    kubectl.pod("d1", app="describe")
    # The event is written after the binding, and not before the pod runs.
    described = eventually_sync(
        lambda: kubectl("describe", "pod", "d1"),
        lambda text: "Successfully assigned default/d1 to node-" in text,
    )
    assert re.search(r"^Status: +Running$", described, re.M)
    assert "Scheduled" in kubectl("get", "events", "--field-selector", "involvedObject.name=d1")
    assert "LAST SEEN" in kubectl("get", "events", "--sort-by=.lastTimestamp")
    assert "Pod/d1" in kubectl("events", "--for", "pod/d1")
    assert kubectl("get", "events.events.k8s.io", "-o", "name").count("event.events.k8s.io/d1.") >= 1


def test_replica_sets_and_scale(kubectl: Session) -> None:
    kubectl("apply", "-f", "-", stdin=REPLICA_SET)
    kubectl("wait", "--for=jsonpath={.status.readyReplicas}=2", "rs/web", "--timeout=100s")
    assert kubectl("scale", "rs/web", "--replicas=3") == "replicaset.apps/web scaled\n"
    kubectl("wait", "--for=jsonpath={.status.readyReplicas}=3", "rs/web", "--timeout=100s")
    scale = kubectl.json("get", "rs", "web", "--subresource=scale")
    assert (scale["kind"], scale["spec"]["replicas"], scale["status"]["selector"]) == ("Scale", 3, "app=web")
    wrong = kubectl.fails("scale", "rs/web", "--current-replicas=9", "--replicas=1")
    assert "Expected replicas to be 9" in wrong
    done = kubectl(
        "patch", "rs", "web", "--subresource=scale", "--type=merge", "-p", '{"spec":{"replicas":1}}'
    )
    assert "patched" in done
    assert re.search(r"^Replicas: +\d current / 1 desired$", kubectl("describe", "rs", "web"), re.M)
    assert kubectl("set", "image", "rs/web", "c=other") == "replicaset.apps/web image updated\n"
    assert kubectl.json("get", "rs", "web")["spec"]["template"]["spec"]["containers"][0]["image"] == "other"
    assert kubectl("delete", "rs", "web", "--timeout=100s") == 'replicaset.apps "web" deleted\n'
    eventually_sync(lambda: kubectl("get", "pods", "-l", "app=web", "-o", "name") == "")


def test_drain(kubectl: Session) -> None:
    kubectl.pod("e1", app="evict")
    node = kubectl("get", "pod", "e1", "-o", "jsonpath={.spec.nodeName}")
    kubectl("create", "pdb", "keep", "--selector=app=evict", "--min-available=1")
    eventually_sync(lambda: kubectl.json("get", "pdb", "keep")["status"].get("expectedPods") == 1)
    refused = kubectl.fails("drain", node, "--force", "--timeout=1s", "--pod-selector=app=evict")
    assert "violate the pod's disruption budget" in refused or "timed out" in refused
    kubectl("delete", "pdb", "keep")
    done = kubectl("drain", node, "--force", "--timeout=100s", "--pod-selector=app=evict")
    assert "pod/e1 evicted" in done
    assert "not found" in kubectl.fails("get", "pod", "e1")
    kubectl("uncordon", node)


def test_delete(kubectl: Session) -> None:
    kubectl.pod("x1", app="delete")
    kubectl.pod("x2", app="delete")
    assert kubectl("delete", "pod", "x1", "--dry-run=server") == 'pod "x1" deleted (server dry run)\n'
    assert kubectl("delete", "pod", "x1", "--wait=true", "--timeout=100s") == 'pod "x1" deleted\n'
    assert kubectl("delete", "pod", "x2", "--force", "--grace-period=0") == ('pod "x2" force deleted\n')
    assert "not found" in kubectl.fails("delete", "pod", "x2")
    kubectl.pod("x3", app="delete")
    kubectl("delete", "pods", "-l", "app=delete", "--wait=false")
    kubectl("wait", "--for=delete", "pod/x3", "--timeout=100s")


def test_what_is_not_emulated_is_said(kubectl: Session) -> None:
    kubectl.pod("n1")
    assert "not emulated" in kubectl.fails("logs", "n1")
    assert "not emulated" in kubectl.fails("exec", "n1", "--", "ls")


def test_watch(kubectl: Session) -> None:
    assert KUBECTL is not None
    words = [
        KUBECTL,
        "get",
        "pods",
        "-l",
        "app=watch",
        "-w",
        "--output-watch-events",
        "-o",
        "wide",
        "--request-timeout=100s",
    ]
    lines: list[str] = []
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=kubectl.environment) as watching:
        try:
            assert watching.stdout is not None
            kubectl.pod("w1", app="watch")
            # Gone before kubectl has begun to look, it would never be shown.
            lines += [watching.stdout.readline(), watching.stdout.readline()]
            kubectl("delete", "pod", "w1", "--timeout=100s")
            for line in watching.stdout:
                lines.append(line)
                if line.startswith("DELETED"):
                    break
        finally:
            watching.send_signal(signal.SIGTERM)
    kinds = [line.split()[0] for line in lines]
    assert kinds[:2] == ["EVENT", "ADDED"]
    assert "NOMINATED NODE" in lines[0]
    assert any(re.match(r"(ADDED|MODIFIED) +w1 +1/1 +Running", line) for line in lines), lines
