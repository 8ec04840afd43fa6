"""`nominee explain -f`: which files it reads, what it prints, what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from nominee.commands.objects.explain import explain
from tests.nominee.explain.test_schema import VALIDATOR

CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {kubernetes.io/hostname: n1}}
status: {allocatable: {cpu: "2", memory: 4Gi, pods: "10"}}
---
apiVersion: v1
kind: Node
metadata: {name: n2, labels: {kubernetes.io/hostname: n2}}
spec: {taints: [{key: gpu, effect: NoSchedule}]}
status: {allocatable: {cpu: "8", memory: 4Gi, pods: "10"}}
---
apiVersion: v1
kind: Pod
metadata: {name: small, namespace: default, uid: small}
spec: {nodeName: n1, containers: [{name: c, resources: {requests: {cpu: 1500m}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default, uid: web}
spec: {priority: 5, containers: [{name: c, resources: {requests: {cpu: "1"}}}]}
---
apiVersion: stable.example.com/v1
kind: CronTab
metadata: {name: web}
"""


def run(*words: str, text: str | None = None) -> Result:
    return CliRunner().invoke(explain, list(words), input=text)


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    path = tmp_path / "cluster.yaml"
    path.write_text(CLUSTER)
    return str(path)


def explanation(*words: str, text: str | None = None) -> dict[str, Any]:
    """Return the only explanation that the command prints, which must follow the schema."""
    answer = run(*words, "-o", "json", text=text)
    assert answer.exit_code == 0, answer.output
    document: dict[str, Any] = json.loads(answer.stdout)
    VALIDATOR.validate(document)
    if document["kind"] == "PodExplanation":
        return document
    (item,) = document["items"]
    assert isinstance(item, dict)
    return item


def rejection(document: dict[str, Any], node: str) -> dict[str, Any]:
    (found,) = (each for each in document["rejectedNodes"] if each["node"] == node)
    assert isinstance(found, dict)
    return found


def test_manifests_as_a_table(cluster: str) -> None:
    answer = run("-f", cluster)
    assert answer.exit_code == 0
    lines = answer.stdout.splitlines()
    assert lines[0] == "default/web  priority 5  fits on no node"
    assert lines[1].split() == ["NODE", "VERDICT", "PLUGIN", "WHY", "PREEMPTION"]
    assert lines[2].split()[:2] == ["n1", "Unschedulable"]
    assert lines[2].endswith("evict default/small, selected")
    assert "n2" in lines[3]
    assert "untolerated taint" in lines[3]
    assert "ignored, as not served: CronTab web" in answer.stderr


def test_manifests_as_json(cluster: str) -> None:
    found = explanation("-f", cluster)
    assert (found["pod"], found["priority"], "cluster" in found) == ("default/web", 5, False)
    assert found["preemption"] == {
        "nominatedNode": "n1",
        "victims": ["default/small"],
        "equalNodes": ["n1"],
        "candidates": [{"node": "n1", "victims": ["default/small"], "pdbViolations": 0}],
        "rejectedNodes": [],
        "message": "",
    }
    assert found["nominatedNodeName"] == {"before": "", "after": "n1"}
    assert found["message"].startswith("0/2 nodes are available: 1 Insufficient cpu")
    assert "Pod/Delete|UpdatePodScaleDown" in found["requeueEvents"]


def test_json_is_a_list_unless_the_pod_is_named(cluster: str) -> None:
    both = json.loads(run("-f", cluster, "-o", "json").stdout)
    alone = json.loads(run("-f", cluster, "-o", "json", "--pod", "web").stdout)
    assert (both["kind"], alone["kind"]) == ("PodExplanationList", "PodExplanation")
    assert both["items"] == [alone]
    assert both["apiVersion"] == alone["apiVersion"] == "explain.nominee.dev/v1"


@pytest.mark.parametrize(
    ("change", "selected"),
    [
        ("node n1 +500m cpu", ["n1"]),
        ("node n1 +4cpu +1Gi memory", ["n1"]),
        ("remove pod default/small", ["n1"]),
        ("add node n3 like n1", ["n3"]),
        ("pod small on n2", ["n1"]),
        ("node n1 +499m cpu", []),
        ("remove node n1", []),
    ],
)
def test_what_if(cluster: str, change: str, selected: list[str]) -> None:
    assert explanation("-f", cluster, "--what-if", change)["selectedNodes"] == selected


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ("node n1 +4", "'+4': expected amounts such as"),
        ("node n1 -3cpu", "node n1 has only 2 cpu"),
        ("node n9 +4cpu", "there is no node n9"),
        ("add node n2 like n1", "node n2 already exists"),
        ("remove pod web2", "there is no pod web2"),
        ("grow everything", "is not understood; write"),
    ],
)
def test_what_if_that_makes_no_sense(cluster: str, change: str, complaint: str) -> None:
    answer = run("-f", cluster, "--what-if", change)
    assert answer.exit_code == 2
    assert complaint in answer.stderr


def case(name: str) -> dict[str, Any]:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1"},
        "status": {"allocatable": {"cpu": "1", "pods": "5"}},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "ns"},
        "spec": {"containers": [{"name": "c"}]},
    }
    return {"name": name, "objects": [node, pod], "pod": "ns/p", "featureGates": {}}


def test_lines_in_lines_out() -> None:
    text = "\n".join(json.dumps(case(f"case-{i}")) for i in range(3))
    answer = run("-f", "-", "-o", "jsonl", text=text)
    assert answer.exit_code == 0, answer.output
    found = [json.loads(line) for line in answer.stdout.splitlines()]
    for line in found:
        VALIDATOR.validate(line)
    assert [line["cluster"] for line in found] == ["case-0", "case-1", "case-2"]
    assert found[0]["selectedNodes"] == ["n1"]


def test_a_name_does_not_change_what_is_filled_in() -> None:
    """Priorities come from classes also in a cluster that has a name."""
    document = case("named")
    classes = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 7,
    }
    document["objects"].append(classes)
    document["objects"][1]["spec"]["priorityClassName"] = "high"
    assert explanation("-f", "-", text=json.dumps(document))["priority"] == 7


def test_one_cluster_over_many_lines() -> None:
    answer = run("-f", "-", "-o", "jsonl", text=json.dumps(case("alone"), indent=2))
    assert json.loads(answer.stdout)["cluster"] == "alone"


def test_a_list_of_manifests_in_json(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": case("x")["objects"]}))
    assert explanation("-f", str(path))["feasibleNodes"] == ["n1"]


def test_older_versions_decide_as_they_did(cluster: str) -> None:
    older = explanation("-f", cluster, "--emulated-version", "1.34")
    assert older["preemption"]["nominatedNode"] == "n1"


@pytest.mark.parametrize(
    ("words", "text", "status", "complaint"),
    [
        ([], None, 2, "give a pod of the running cluster"),
        (["pod", "web", "-f", "-"], CLUSTER, 2, "give a pod of the running cluster"),
        (["node", "n1"], None, 2, "expected `nominee explain pod NS/NAME`"),
        (["pod", "a/b", "--dir", "/nowhere"], None, 1, "scheduler does not run in /nowhere"),
        (["-f", "/nowhere.yaml"], None, 2, "No such file"),
        (["-f", "-"], "a: [", 1, "not valid YAML"),
        (["-f", "-"], "kind: Node\napiVersion: v1\nmetadata: {name: n}", 1, "no pod waits for a node"),
        (["-f", "-", "--pod", "a/b"], CLUSTER, 1, "there is no pod a/b; pending pods: default/web"),
        (["-f", "-", "--pod", "small"], CLUSTER, 1, "pod default/small is already on node n1"),
        (["-f", "-", "--feature-gates", "Foo=true"], CLUSTER, 2, "unrecognized feature gate: Foo"),
        (["-f", "-", "--emulated-version", "new"], CLUSTER, 2, "--emulated-version"),
        (["-f", "-"], '{"name": "x", "objects": 3}', 1, "expected a list of objects"),
    ],
)  # fmt: skip
def test_refusals(words: list[str], text: str | None, status: int, complaint: str) -> None:
    answer = run(*words, text=text)
    assert answer.exit_code == status, answer.output
    assert complaint in answer.stderr
    assert "Traceback" not in answer.output


def test_a_cluster_without_nodes() -> None:
    found = explanation("-f", "-", text=json.dumps(case("x")["objects"][1]))
    assert (found["feasibleNodes"], found["rejectedNodes"]) == ([], [])
    assert found["message"] == "no nodes available to schedule pods"
    assert found["preemption"]["candidates"] == []


def test_a_gated_pod() -> None:
    document = case("x")
    document["objects"][1]["spec"]["schedulingGates"] = [{"name": "quota"}]
    answer = run("-f", "-", text=json.dumps(document))
    assert "default/p" not in answer.stdout
    assert "ns/p  priority 0  is not scheduled: waiting for scheduling gates: [quota]" in answer.stdout


def test_manifests_as_people_write_them() -> None:
    """Without namespaces and uids, and with limits in place of requests."""
    text = """
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "2", memory: 4Gi, pods: "10"}}
---
apiVersion: v1
kind: Pod
metadata: {name: one}
spec: {nodeName: n1, containers: [{name: c, resources: {limits: {cpu: "1"}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: two}
spec: {nodeName: n1, containers: [{name: c, resources: {limits: {cpu: "1"}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: c, resources: {limits: {cpu: 100m}}}]}
"""
    found = explanation("-f", "-", text=text)
    assert found["pod"] == "default/web"
    assert rejection(found, "n1")["reasons"] == ["Insufficient cpu"]


@pytest.mark.parametrize(("name", "victims"), [("high", ["default/small"]), ("low", []), ("gentle", [])])
def test_priorities_come_from_classes(name: str, victims: list[str]) -> None:
    classes = "".join(
        f"""
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {{name: {each}}}
value: {value}
preemptionPolicy: {policy}
"""
        for each, value, policy in (
            ("high", 10, "PreemptLowerPriority"),
            ("low", -1, "PreemptLowerPriority"),
            ("gentle", 10, "Never"),
        )
    )
    text = CLUSTER.replace("priority: 5", f"priorityClassName: {name}") + classes
    assert explanation("-f", "-", text=text)["preemption"]["victims"] == victims


CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {disabled: [{name: TaintToleration}]}}
- schedulerName: heavy
  plugins: {score: {disabled: [{name: ImageLocality}], enabled: [{name: ImageLocality, weight: 9}]}}
extenders:
- {urlPrefix: "http://127.0.0.1:1", filterVerb: filter}
"""


def test_a_configuration_says_which_plugins_judge(cluster: str, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG)
    before = explanation("-f", cluster, "--pod", "web")
    assert rejection(before, "n2")["plugin"] == "TaintToleration"
    answer = run("-f", cluster, "--pod", "web", "--config", str(config), "-o", "json")
    assert json.loads(answer.stdout)["selectedNodes"] == ["n2"]
    assert "1 extenders are not called" in answer.stderr


def test_the_profile_is_that_of_the_pods_scheduler_name(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG)
    manifests = tmp_path / "cluster.yaml"

    def scores(name: str) -> Any:
        text = CLUSTER.replace("effect: NoSchedule", "effect: PreferNoSchedule")
        manifests.write_text(text.replace("priority: 5", f"priority: 5, schedulerName: {name}"))
        return run("-f", str(manifests), "--pod", "web", "--config", str(config), "-o", "json")

    heavy = json.loads(scores("heavy").stdout)
    assert rejection(heavy, "n1")["plugin"] == "NodeResourcesFit"
    refused = scores("missing")
    assert refused.exit_code != 0
    assert "has the schedulerName missing; profiles: default-scheduler, heavy" in refused.output


def test_a_wrong_configuration_is_named_by_its_field(cluster: str, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG.replace("weight: 9", "weight: none"))
    answer = run("-f", cluster, "--config", str(config))
    assert answer.exit_code != 0
    assert "profiles[1].plugins.score.enabled[0].weight" in answer.output
