"""Observations of StatefulSets with kubectl. Each names its source.

"Concept" is kubernetes.io/docs/concepts/workloads/controllers/statefulset, "tutorial" is
.../tutorials/stateful-application/basic-stateful-set; Go files are of pkg/controller/statefulset.
"""

from __future__ import annotations

import itertools
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver.rest.test_kubectl import KUBECTL, Session, namespaced
from tests.controllers.e2e.clusters import observed
from tests.support.eventually import eventually_sync

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(KUBECTL is None, reason="no kubectl on PATH: install one to run this session"),
]
STORAGE_CLASS = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: stateful}
provisioner: delayed.nominee.dev
volumeBindingMode: WaitForFirstConsumer
"""
NEVER_READY = {"nominee.dev/ready-delay": "1h"}
SORTED = "--sort-by=.metadata.name"


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with observed(tmp_path_factory.mktemp("stateful") / "cluster") as session:
        session("apply", "-f", "-", stdin=STORAGE_CLASS)
        yield session


class Observed:
    """A stateful set of a test, seen through kubectl."""

    def __init__(self, kubectl: Session, name: str) -> None:
        self.kubectl = kubectl
        self.name = name

    def apply(
        self,
        *,
        claims: bool = False,
        annotations: dict[str, str] | None = None,
        image: str = "v1",
        **spec: Any,
    ) -> None:
        claim = {
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "stateful",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
        body = {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": self.name},
            "spec": {
                "replicas": 3,
                "serviceName": f"{self.name}-svc",
                "selector": {"matchLabels": {"app": self.name}},
                "template": {
                    "metadata": {"labels": {"app": self.name}, "annotations": annotations or {}},
                    "spec": {
                        "terminationGracePeriodSeconds": 1,
                        "containers": [{"name": "c", "image": f"pause:{image}"}],
                    },
                },
                "volumeClaimTemplates": [claim] if claims else [],
                **spec,
            },
        }
        self.kubectl("apply", "-f", "-", stdin=json.dumps(body))

    def rolled_out(self) -> None:
        self.kubectl("rollout", "status", f"sts/{self.name}", "--timeout=100s")

    def patch(self, spec: dict[str, Any]) -> None:
        self.kubectl("patch", "sts", self.name, "--type=merge", "-p", json.dumps({"spec": spec}))

    def annotate(self, annotations: dict[str, str]) -> None:
        """Change the template's annotations."""
        self.patch({"template": {"metadata": {"annotations": annotations}}})

    def replace_pod(self, ordinal: int) -> None:
        """Delete a pod, and wait for the new one. kubectl waits for ever if it lists that one first."""
        name = f"{self.name}-{ordinal}"
        before = self.uids()[name]
        self.kubectl("delete", "pod", name, "--wait=false")
        eventually_sync(lambda: self.uids().get(name, before), lambda uid: uid != before)

    def pods(self) -> list[dict[str, Any]]:
        found = self.kubectl.json("get", "pods", "-l", f"app={self.name}", SORTED)
        items: list[dict[str, Any]] = found["items"]
        return items

    def images(self) -> str:
        """Return `v1 v2` for the pods' images."""
        return " ".join(pod["spec"]["containers"][0]["image"].partition(":")[2] for pod in self.pods())

    def uids(self) -> dict[str, str]:
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in self.pods()}

    def ordinals(self) -> str:
        """Return `0 1` for the ordinals of the pods."""
        words = self.kubectl("get", "pods", "-l", f"app={self.name}", "-o", "name").split()
        return " ".join(sorted(word.rpartition("-")[2] for word in words))

    def claims(self) -> str:
        words = self.kubectl("get", "pvc", "-l", f"app={self.name}", "-o", "name").split()
        return " ".join(sorted(word.rpartition("-")[2] for word in words))

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.kubectl.json("get", "sts", self.name)["status"]
        return found

    def becomes(self, read: Callable[[], Any], value: Any) -> None:
        eventually_sync(read, lambda found: found == value)

    def stays(self, read: Callable[[], Any], value: Any) -> None:
        """Check that a value is still there when the controller has seen the set's latest generation."""
        generation = self.kubectl.json("get", "sts", self.name)["metadata"]["generation"]
        eventually_sync(lambda: self.status().get("observedGeneration"), lambda seen: seen == generation)
        assert read() == value

    def notes(self, reason: str = "") -> list[str]:
        """Return the notes of the set's events with a reason, the oldest first."""
        of = f"involvedObject.name={self.name},involvedObject.kind=StatefulSet"
        found = self.kubectl.json("get", "events", "--field-selector", f"{of},reason={reason}")["items"]
        found.sort(key=lambda each: str(each["firstTimestamp"]))
        return [str(each["message"]) for each in found]


@pytest.fixture
def sts(kubectl: Session, request: pytest.FixtureRequest) -> Iterator[Observed]:
    name = f"s{zlib.crc32(request.node.name.encode())}"
    yield Observed(kubectl, name)
    kubectl("delete", "sts", name, "--ignore-not-found", "--wait=false")


@pytest.fixture
def newer(live: Path) -> Iterator[Observed]:
    """Yield a stateful set in a cluster of Nominee's own version, 1.37."""
    with namespaced(live, "stateful") as session:
        yield Observed(session, "newer")


def test_pods_are_created_in_the_order_of_their_ordinals(sts: Observed) -> None:
    """Concept, "Deployment and Scaling Guarantees": in order, each when its predecessors are ready."""
    sts.apply(annotations={"nominee.dev/ready-delay": "300ms"})
    sts.rolled_out()
    pods = sts.pods()
    assert [pod["metadata"]["name"] for pod in pods] == [f"{sts.name}-{n}" for n in range(3)]
    for before, after in itertools.pairwise(pods):
        (ready,) = [row for row in before["status"]["conditions"] if row["type"] == "Ready"]
        assert ready["lastTransitionTime"] <= after["metadata"]["creationTimestamp"]
    assert sts.notes("SuccessfulCreate") == [
        f"create Pod {sts.name}-{n} in StatefulSet {sts.name} successful" for n in range(3)
    ]


def test_the_next_pod_waits_for_a_pod_that_is_not_ready(sts: Observed) -> None:
    """Tutorial, "Ordered Pod creation"."""
    sts.apply(annotations=NEVER_READY)
    sts.becomes(lambda: [pod["status"]["phase"] for pod in sts.pods()], ["Running"])
    sts.stays(sts.ordinals, "0")
    assert (
        "Waiting for 3 pods to be ready"
        in sts.kubectl.run("rollout", "status", f"sts/{sts.name}", "--timeout=500ms").stdout
    )


def test_the_identity_of_a_pod(sts: Observed) -> None:
    """Concept, "Pod Identity", "Pod name label", "Pod index label"; stateful_set_utils.go (initIdentity)."""
    sts.apply(replicas=2)
    sts.rolled_out()
    pod = sts.pods()[1]
    name, revision = f"{sts.name}-1", sts.status()["updateRevision"]
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == (name, f"{sts.name}-svc")
    assert pod["metadata"]["generateName"] == f"{sts.name}-"
    assert pod["metadata"]["labels"] == {
        "app": sts.name,
        "apps.kubernetes.io/pod-index": "1",
        "controller-revision-hash": revision,
        "statefulset.kubernetes.io/pod-name": name,
    }
    (owner,) = pod["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["controller"], owner["blockOwnerDeletion"]) == ("StatefulSet", True, True)
    row = sts.kubectl("get", "controllerrevisions", revision, "--no-headers").split()
    assert row[:3] == [revision, f"statefulset.apps/{sts.name}", "1"]


def test_a_deleted_pod_comes_back_with_its_name_and_its_claim(sts: Observed) -> None:
    """Concept, "Stable Storage"; tutorial, "Writing to stable storage"."""
    sts.apply(claims=True, replicas=2)
    sts.rolled_out()
    before, volumes = sts.uids(), sts.kubectl("get", "pvc", "-o", "jsonpath={.items[*].spec.volumeName}")
    sts.replace_pod(0)
    sts.becomes(lambda: sts.status().get("readyReplicas"), 2)
    after = sts.uids()
    assert after.keys() == before.keys()
    assert after[f"{sts.name}-0"] != before[f"{sts.name}-0"]
    assert sts.kubectl("get", "pvc", "-o", "jsonpath={.items[*].spec.volumeName}") == volumes
    (volume,) = [each for each in sts.pods()[0]["spec"]["volumes"] if each["name"] == "data"]
    assert volume["persistentVolumeClaim"] == {"claimName": f"data-{sts.name}-0"}
    created = sts.notes("SuccessfulCreate")
    assert created[0] == f"create Claim data-{sts.name}-0 Pod {sts.name}-0 in StatefulSet {sts.name} success"


def test_scaling_down_keeps_the_claims_for_scaling_up(sts: Observed) -> None:
    """Tutorial, "Scaling down": in reverse order, and the claims stay."""
    sts.apply(claims=True)
    sts.rolled_out()
    sts.kubectl("scale", f"sts/{sts.name}", "--replicas=1")
    sts.becomes(sts.ordinals, "0")
    assert sts.notes("SuccessfulDelete") == [
        f"delete Pod {sts.name}-{n} in StatefulSet {sts.name} successful" for n in (2, 1)
    ]
    assert sts.claims() == "0 1 2"
    volume = f"jsonpath={{.items[?(@.metadata.name=='data-{sts.name}-1')].spec.volumeName}}"
    kept = sts.kubectl("get", "pvc", "-o", volume)
    sts.kubectl("scale", f"sts/{sts.name}", "--replicas=2")
    sts.rolled_out()
    assert (sts.ordinals(), sts.claims()) == ("0 1", "0 1 2")
    assert sts.kubectl("get", "pvc", "-o", volume) == kept


def test_scaling_down_waits_for_an_unready_predecessor(sts: Observed) -> None:
    """Concept: before a pod is terminated, all its predecessors must be Running and Ready."""
    sts.apply(updateStrategy={"type": "OnDelete"})
    sts.becomes(lambda: sts.status().get("readyReplicas"), 3)
    sts.annotate(NEVER_READY)
    sts.replace_pod(0)
    sts.kubectl("scale", f"sts/{sts.name}", "--replicas=1")
    sts.stays(sts.ordinals, "0 1 2")
    sts.annotate({"nominee.dev/ready-delay": "0s"})
    sts.replace_pod(0)
    sts.becomes(sts.ordinals, "0")


def test_parallel_pods_do_not_wait_for_one_another(sts: Observed) -> None:
    """Concept, "Parallel pod management"."""
    sts.apply(podManagementPolicy="Parallel", annotations=NEVER_READY)
    sts.becomes(sts.ordinals, "0 1 2")
    sts.kubectl("scale", f"sts/{sts.name}", "--replicas=0")
    sts.becomes(sts.ordinals, "")


def test_ordinals_that_start_elsewhere(sts: Observed) -> None:
    """Concept, "Start ordinal": from .spec.ordinals.start up to .spec.ordinals.start + .spec.replicas - 1."""
    sts.apply(replicas=2, ordinals={"start": 5})
    sts.rolled_out()
    assert sts.ordinals() == "5 6"
    sts.patch({"ordinals": {"start": 6}})
    sts.becomes(sts.ordinals, "6 7")


def test_an_update_in_reverse_order_and_its_history(sts: Observed) -> None:
    """Tutorial, "Rolling update"; concept, "Rolling Updates" and "Revision history"."""
    sts.apply()
    sts.rolled_out()
    old = sts.status()["currentRevision"]
    sts.kubectl("set", "image", f"sts/{sts.name}", "c=pause:v2")
    sts.rolled_out()
    assert sts.images() == "v2 v2 v2"
    deleted = [f"delete Pod {sts.name}-{n} in StatefulSet {sts.name} successful" for n in (2, 1, 0)]
    assert sts.notes("SuccessfulDelete") == deleted
    new = sts.status()["updateRevision"]
    sts.becomes(lambda: sts.status()["currentRevision"], new)
    assert new != old
    history = sts.kubectl("rollout", "history", f"sts/{sts.name}")
    assert [line.split()[0] for line in history.splitlines()[2:] if line] == ["1", "2"]
    assert "pause:v1" in sts.kubectl("rollout", "history", f"sts/{sts.name}", "--revision=1")


def test_a_roll_back_makes_the_old_revision_the_latest(sts: Observed) -> None:
    """stateful_set_control.go (getStatefulSetRevisions): an equal revision is renumbered."""
    sts.apply(replicas=1)
    sts.rolled_out()
    old = sts.status()["currentRevision"]
    sts.kubectl("set", "image", f"sts/{sts.name}", "c=pause:v2")
    sts.rolled_out()
    undone = sts.kubectl("rollout", "undo", f"sts/{sts.name}")
    assert undone == f"statefulset.apps/{sts.name} rolled back\n"
    sts.rolled_out()
    assert (sts.images(), sts.status()["updateRevision"]) == ("v1", old)
    history = sts.kubectl("rollout", "history", f"sts/{sts.name}")
    assert [line.split()[0] for line in history.splitlines()[2:] if line] == ["2", "3"]
    sts.kubectl("rollout", "undo", f"sts/{sts.name}", "--to-revision=2")
    sts.becomes(sts.images, "v2")


def test_a_restart_replaces_all_pods(sts: Observed) -> None:
    """kubernetes.io/docs/reference/kubectl, "kubectl rollout restart"."""
    sts.apply(replicas=2)
    sts.rolled_out()
    before = sts.uids()
    sts.kubectl("rollout", "restart", f"sts/{sts.name}")
    sts.rolled_out()
    after = sts.uids()
    assert after.keys() == before.keys()
    assert not {*after.values()} & {*before.values()}


def test_a_partition_holds_the_pods_below_it(sts: Observed) -> None:
    """Concept, "Partitioned rolling updates"; tutorial, "Rolling out a canary"."""
    sts.apply(updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}})
    sts.rolled_out()
    sts.kubectl("set", "image", f"sts/{sts.name}", "c=pause:v2")
    sts.rolled_out()
    assert sts.images() == "v1 v1 v2"
    # Even a pod that is deleted comes back at the old revision.
    sts.replace_pod(1)
    sts.becomes(lambda: sts.status().get("readyReplicas"), 3)
    assert sts.images() == "v1 v1 v2"
    status = sts.status()
    assert (status["currentReplicas"], status["updatedReplicas"]) == (2, 1)
    assert status["currentRevision"] != status["updateRevision"]
    sts.patch({"updateStrategy": {"rollingUpdate": {"partition": 0}}})
    sts.rolled_out()
    assert sts.images() == "v2 v2 v2"


def test_on_delete_updates_only_the_pods_that_are_deleted(sts: Observed) -> None:
    """Tutorial, "OnDelete"; concept, "Update strategies"."""
    sts.apply(replicas=2, updateStrategy={"type": "OnDelete"})
    sts.becomes(lambda: sts.status().get("readyReplicas"), 2)
    sts.kubectl("set", "image", f"sts/{sts.name}", "c=pause:v2")
    sts.stays(sts.images, "v1 v1")
    sts.replace_pod(1)
    sts.becomes(sts.images, "v1 v2")
    assert "OnDelete" in sts.kubectl("describe", "sts", sts.name)


def test_a_broken_update_waits_and_needs_a_forced_roll_back(sts: Observed) -> None:
    """Concept, "Forced rollback": reverting the template is not enough, the broken pod must be deleted."""
    sts.apply()
    sts.rolled_out()
    sts.annotate(NEVER_READY)
    sts.becomes(lambda: sts.status().get("readyReplicas"), 2)
    sts.becomes(lambda: sts.status().get("updatedReplicas"), 1)
    broken = sts.uids()[f"{sts.name}-2"]
    sts.kubectl("rollout", "undo", f"sts/{sts.name}")
    sts.stays(lambda: sts.uids()[f"{sts.name}-2"], broken)
    sts.replace_pod(2)
    sts.rolled_out()
    assert sts.uids()[f"{sts.name}-2"] != broken


SEVERAL: dict[str, Any] = {
    "podManagementPolicy": "Parallel",
    "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}},
}


def test_max_unavailable_is_dropped(sts: Observed) -> None:
    """Feature gates, MaxUnavailableStatefulSet: off in 1.36 (kubernetes/kubernetes#137904)."""
    sts.apply(replicas=2, **SEVERAL)
    rolling = sts.kubectl.json("get", "sts", sts.name)["spec"]["updateStrategy"]["rollingUpdate"]
    assert rolling == {"partition": 0}
    sts.becomes(lambda: sts.status().get("readyReplicas"), 2)
    sts.annotate(NEVER_READY)
    sts.becomes(lambda: sts.status().get("updatedReplicas"), 1)
    sts.stays(lambda: sts.status()["readyReplicas"], 1)


def test_max_unavailable_updates_several_pods_at_once(newer: Observed) -> None:
    """Concept, "Maximum unavailable Pods"; on since 1.37 (kubernetes/kubernetes#139466)."""
    sts = newer
    sts.apply(replicas=4, **SEVERAL)
    sts.becomes(lambda: sts.status().get("readyReplicas"), 4)
    sts.annotate(NEVER_READY)
    sts.becomes(lambda: sts.status().get("updatedReplicas"), 2)
    sts.stays(lambda: sts.status()["readyReplicas"], 2)
    assert {note.split()[2] for note in sts.notes("SuccessfulDelete")} == {f"{sts.name}-2", f"{sts.name}-3"}


def test_min_ready_seconds_delay_the_next_pod(sts: Observed) -> None:
    """Concept, "Minimum ready seconds"; KEP-2599."""
    sts.apply(replicas=2, minReadySeconds=2)
    sts.becomes(lambda: sts.status().get("readyReplicas"), 1)
    assert sts.status()["availableReplicas"] in (0, 1)
    sts.becomes(lambda: sts.status()["availableReplicas"], 2)
    first, second = sts.pods()
    (ready,) = [row for row in first["status"]["conditions"] if row["type"] == "Ready"]
    seconds = [each[-3:-1] for each in (ready["lastTransitionTime"], second["metadata"]["creationTimestamp"])]
    assert (int(seconds[1]) - int(seconds[0])) % 60 >= 2


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_pod_that_ended_is_deleted_and_created_again(sts: Observed, phase: str) -> None:
    """stateful_set_control.go (processReplica)."""
    sts.apply(replicas=1, annotations=NEVER_READY)
    sts.becomes(lambda: [pod["status"]["phase"] for pod in sts.pods()], ["Running"])
    ended = sts.uids()
    status = json.dumps({"status": {"phase": phase}})
    sts.kubectl("patch", "pod", f"{sts.name}-0", "--subresource=status", "--type=merge", "-p", status)
    eventually_sync(sts.uids, lambda found: found.keys() == ended.keys() and found != ended)
    assert sts.notes("SuccessfulDelete") == [f"delete Pod {sts.name}-0 in StatefulSet {sts.name} successful"]


def test_a_quota_is_reported_until_there_is_room(sts: Observed) -> None:
    """stateful_pod_control.go (recordPodEvent, recordClaimEvent)."""
    quota = f"q{sts.name}"
    sts.kubectl("create", "quota", quota, "--hard=pods=0")
    eventually_sync(
        lambda: sts.kubectl.json("get", "quota", quota)["status"], lambda status: "hard" in status
    )
    sts.apply(replicas=1)
    (note,) = eventually_sync(lambda: sts.notes("FailedCreate")[:1], bool)
    assert note.startswith(f"create Pod {sts.name}-0 in StatefulSet {sts.name} failed error: ")
    assert f'pods "{sts.name}-0" is forbidden: exceeded quota: {quota}' in note
    sts.kubectl("delete", "quota", quota)
    sts.rolled_out()


def test_the_history_limit(sts: Observed) -> None:
    """Concept, ".spec.revisionHistoryLimit"; stateful_set_control.go (truncateHistory)."""
    sts.apply(replicas=1, revisionHistoryLimit=1)
    for image in ("v2", "v3", "v4"):
        sts.kubectl("set", "image", f"sts/{sts.name}", f"c=pause:{image}")
        sts.rolled_out()
    numbers = ("get", "controllerrevisions", "-l", f"app={sts.name}", "-o", "jsonpath={.items[*].revision}")
    sts.becomes(lambda: sorted(sts.kubectl(*numbers).split()), ["3", "4"])


def test_claims_go_with_their_set_if_the_policy_says_so(sts: Observed) -> None:
    """Concept, "PersistentVolumeClaim retention", whenDeleted."""
    sts.apply(claims=True, replicas=2, persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete"})
    sts.rolled_out()
    owners = "jsonpath={.items[*].metadata.ownerReferences[*].kind}"
    sts.becomes(
        lambda: sts.kubectl("get", "pvc", "-l", f"app={sts.name}", "-o", owners), "StatefulSet StatefulSet"
    )
    sts.kubectl("scale", f"sts/{sts.name}", "--replicas=1")
    sts.becomes(sts.ordinals, "0")
    assert sts.claims() == "0 1"
    sts.kubectl("delete", "sts", sts.name)
    sts.becomes(sts.claims, "")


def test_claims_go_with_their_pod_if_the_policy_says_so(sts: Observed) -> None:
    """Concept, "PersistentVolumeClaim retention", whenScaled: not when a pod is deleted otherwise."""
    sts.apply(claims=True, persistentVolumeClaimRetentionPolicy={"whenScaled": "Delete"})
    sts.rolled_out()
    sts.replace_pod(1)
    sts.becomes(lambda: sts.status().get("readyReplicas"), 3)
    assert sts.claims() == "0 1 2"
    sts.kubectl("scale", f"sts/{sts.name}", "--replicas=1")
    sts.becomes(sts.claims, "0")
    # The pod of an ordinal waits for the end of its predecessor's claim.
    sts.kubectl("scale", f"sts/{sts.name}", "--replicas=2")
    sts.rolled_out()
    assert sts.claims() == "0 1"
    sts.kubectl("delete", "sts", sts.name)
    sts.becomes(sts.ordinals, "")
    assert sts.claims() == "0 1"


@pytest.mark.parametrize("cascade", ["background", "foreground"])
def test_a_deleted_set_takes_pods_and_revisions_but_no_claims(sts: Observed, cascade: str) -> None:
    """Concept, "Deleting StatefulSets" and "Limitations": no order of termination, volumes stay."""
    sts.apply(claims=True, replicas=2)
    sts.rolled_out()
    sts.kubectl("delete", "sts", sts.name, f"--cascade={cascade}")
    sts.becomes(sts.ordinals, "")
    sts.becomes(lambda: sts.kubectl("get", "controllerrevisions", "-l", f"app={sts.name}", "-o", "name"), "")
    assert sts.claims() == "0 1"


def test_orphaned_pods_are_adopted_by_a_new_set(sts: Observed) -> None:
    """Tutorial, "Non-cascading delete": the pods of the earlier set stay, one that was deleted comes back."""
    sts.apply(replicas=2)
    sts.rolled_out()
    before, revision = sts.uids(), sts.status()["currentRevision"]
    sts.kubectl("delete", "sts", sts.name, "--cascade=orphan")
    assert sts.uids() == before
    owners = "jsonpath={.items[*].metadata.ownerReferences[*].uid}"
    sts.becomes(lambda: sts.kubectl("get", "pods", "-l", f"app={sts.name}", "-o", owners), "")
    sts.apply(replicas=2)
    sts.rolled_out()
    assert (sts.uids(), sts.status()["currentRevision"]) == (before, revision)
    sts.kubectl("delete", "sts", sts.name)
    sts.becomes(sts.ordinals, "")
