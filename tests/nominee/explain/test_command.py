"""`nominee explain -f`: which files it reads, what it prints, what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from nominee.commands.objects.explain import _choice, explain
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
    assert alone.pop("helpfulChanges")
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
        ("add 2 nodes like n1", ["n1-copy-1", "n1-copy-2"]),
        ("taint node n2 gpu-", ["n2"]),
        ("taint node n2 gpu:NoSchedule-", ["n2"]),
        ("taint node n2 gpu:NoExecute-", []),
        ("pod web cpu=500m memory=1Gi", ["n1"]),
        ("remove pod small; taint node n1 x=y:NoSchedule", []),
        ("remove pod small;", ["n1"]),
        ("label node n1 zone=b; label pod web app=x; taint node n2 gpu-", ["n2"]),
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
        ("taint node n1 key", "'key': expected KEY=VALUE:NoSchedule"),
        ("label node n1 zone", "'zone': expected KEY=VALUE"),
        ("pod web priority=high", "priority 'high' is not a whole number"),
        ("pod web cpu=much", "cpu=much: "),
        ("add 9999 nodes like n1", "'add 9999 nodes': the number must be between 1 and 5000"),
        ("add 0 nodes like n1", "'add 0 nodes': the number must be between 1 and 5000"),
    ],
)
def test_what_if_that_makes_no_sense(cluster: str, change: str, complaint: str) -> None:
    answer = run("-f", cluster, "--what-if", change)
    assert answer.exit_code == 2
    assert complaint in answer.stderr


def test_the_pods_of_a_drained_node_are_pending(cluster: str) -> None:
    answer = run("-f", cluster, "--what-if", "drain node n1", "-o", "json")
    found = {each["pod"]: each for each in json.loads(answer.stdout)["items"]}
    assert set(found) == {"default/small", "default/web"}
    assert rejection(found["default/small"], "n1")["reasons"] == ["node(s) were unschedulable"]


def test_a_priority_changes_the_victims(cluster: str) -> None:
    low = explanation("-f", cluster, "--what-if", "pod web priority=-1")["preemption"]
    assert (low["victims"], explanation("-f", cluster)["preemption"]["victims"]) == ([], ["default/small"])


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
        (["pod", "web", "-f", "-", "--pod", "web"], CLUSTER, 2, "give a pod of the running cluster"),
        (["pod", "web", "--what-if", "remove node n1"], None, 2, "--what-if needs the cluster's objects"),
        (["-f", "-", "--kubeconfig", __file__], CLUSTER, 2, "give -f FILE, or --kubeconfig"),
        (["-f", "-", "--context", "a"], CLUSTER, 2, "give -f FILE, or --kubeconfig"),
        (["pod", "web", "--kubeconfig", __file__], None, 1, "test_command.py: is no kubeconfig"),
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


def test_the_pod_of_a_file_is_named_either_way(cluster: str) -> None:
    assert run("pod", "web", "-f", cluster).stdout == run("-f", cluster, "--pod", "web").stdout


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


def test_changes_that_help_were_tried(cluster: str) -> None:
    found = explanation("-f", cluster, "--pod", "web", "--what-if", "pod small priority=9")
    helpful = found["helpfulChanges"]
    assert helpful == [
        "node n1 +500m cpu",
        "pod default/web cpu=500m",
        "taint node n2 gpu:NoSchedule-",
        "pod default/web priority=10",
        "add 1 node like n1",
    ]
    for change in helpful:
        again = explanation("-f", cluster, "--what-if", "pod small priority=9", "--what-if", change)
        assert again["selectedNodes"] or again["preemption"]["victims"] == ["default/small"], change


RESIZE = """
apiVersion: v1
kind: Node
metadata: {name: n1}
%(policy)s
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
apiVersion: v1
kind: Pod
metadata: {name: low, namespace: default}
spec: {nodeName: n1, priority: 1, containers: [{name: c, resources: {requests: {cpu: "%(low)s"}}}]}
status: {phase: Running}
---
apiVersion: v1
kind: Pod
metadata: {name: grow, namespace: default}
spec: {nodeName: n1, priority: 5, containers: [{name: c, resources: {requests: {cpu: "3"}}}]}
status:
  phase: Running
  conditions: [{type: PodResizePending, status: "True", reason: Deferred, message: "no cpu left"}]
  containerStatuses:
  - {name: c, allocatedResources: {cpu: "1"}, resources: {requests: {cpu: "1"}}}
"""
GATE = "InPlacePodVerticalScalingSchedulerPreemption"


@pytest.mark.parametrize(
    ("low", "policy", "gates", "headline"),
    [
        ("2", "", f"{GATE}=true", "its resize is deferred on n1; preemption evicts default/low"),
        ("1", "", f"{GATE}=true", "its resize fits on n1; it waits for the kubelet"),
        (
            "2",
            "",
            "",
            f"its resize is deferred on n1; no preemption: the scheduler's feature gate {GATE} is off",
        ),
        (
            "2",
            "spec: {podPreemptionPolicy: {disableResizePreemption: [a.io/b]}}",
            f"{GATE}=true",
            "no preemption: the node's podPreemptionPolicy disables preemption for resizes",
        ),
    ],
)
def test_a_deferred_resize(tmp_path: Path, low: str, policy: str, gates: str, headline: str) -> None:
    path = tmp_path / "resize.yaml"
    path.write_text(RESIZE % {"low": low, "policy": policy})
    words = ["-f", str(path), "--emulated-version", "1.37", *(["--feature-gates", gates] if gates else [])]
    answer = run(*words, "--pod", "grow")
    assert headline in answer.stdout.splitlines()[0]
    assert "kubelet: no cpu left" in answer.stdout
    assert "nominatedNodeName" not in answer.stdout
    assert explanation(*words, "--pod", "grow")["deferredResize"]["node"] == "n1"
    # Without --pod it is among the pods that wait.
    assert [each["pod"] for each in json.loads(run(*words, "-o", "json").stdout)["items"]] == ["default/grow"]


def test_compare_shows_the_pods_whose_answer_changes(tmp_path: Path) -> None:
    path = tmp_path / "resize.yaml"
    path.write_text(RESIZE % {"low": "2", "policy": ""})
    words = ["-f", str(path), "--emulated-version", "1.37", "--compare", f"{GATE}=false,{GATE}=true"]
    answer = run(*words)
    assert answer.exit_code == 0, answer.output
    _, row, last = answer.stdout.splitlines()
    assert row.startswith("default/grow   the resize is deferred; the scheduler's feature gate")
    assert row.endswith("the resize is deferred; preemption on n1 evicts default/low")
    assert last == "1 of 2 pods have another answer"
    (changed,) = json.loads(run(*words, "-o", "json").stdout)["changed"]
    assert changed["pod"] == "default/grow"


def test_compare_counts_many_nodes() -> None:
    every, nine = (
        "goes to " + " or ".join(f"n{number}" for number in numbers) for numbers in (range(10), range(1, 10))
    )
    assert _choice(every, nine) == "goes to one of 10 nodes, also n0"
    assert _choice(nine, every) == "goes to one of 9 nodes"
    assert _choice(every, "no node") == "goes to one of 10 nodes"
    assert _choice("no node", every) == "no node"


@pytest.mark.parametrize("compare", ["1.36", "1.35,1.36,1.37", "1.35,pods"])
def test_compare_takes_two_settings(cluster: str, compare: str) -> None:
    assert run("-f", cluster, "--compare", compare).exit_code == 2
