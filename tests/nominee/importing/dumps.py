"""Dumps of real clusters, made up: what `kubectl get ... -A -o json --show-managed-fields` prints.

Nodes in three zones and two pools; Deployments, a DaemonSet, a StatefulSet with volumes, a Job; services,
accounts, quotas; and what cannot come: custom resources, a webhook. The same arguments give the same dump.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from tests.nominee.importing.dump_parts import CREATED, STARTED, Document, node_parts, template_of

REPLICAS = 20
"""Of each Deployment."""


def dump(nodes: int, pods: int, *, seed: int = 1) -> Document:
    """Return a List with so many nodes, and so many pods besides those of the DaemonSet.

    The last pod waits for a resize to more than its node has free.
    """
    made = _Dump(random.Random(seed), nodes)
    items = [*made.cluster(), *made.nodes(), *made.workloads(pods)]
    _defer_resize(items[-1])
    return {"apiVersion": "v1", "kind": "List", "items": items, "metadata": {"resourceVersion": ""}}


def _defer_resize(pod: Document) -> None:
    pod["metadata"]["generation"] = 2
    container = pod["spec"]["containers"][0]
    resources = container["resources"]
    pod["spec"]["containers"] = [
        {**container, "resources": {**resources, "requests": {**resources["requests"], "cpu": "7500m"}}}
    ]
    pod["status"]["conditions"].append(
        {
            "type": "PodResizePending",
            "status": "True",
            "reason": "Deferred",
            "message": "Node didn't have enough resource: cpu",
            "lastProbeTime": None,
            "lastTransitionTime": STARTED,
            "observedGeneration": 2,
        }
    )


class _Dump:
    def __init__(self, rng: random.Random, nodes: int) -> None:
        self.rng = rng
        self.node_names = [f"ip-10-0-{index // 256}-{index % 256}.ec2.internal" for index in range(nodes)]
        self.pods_on = dict.fromkeys(self.node_names, 0)

    def made(
        self,
        api_version: str,
        kind: str,
        name: str,
        namespace: str = "",
        owner: Document | None = None,
        **more: Any,
    ) -> Document:
        metadata: Document = {
            "name": name,
            "uid": str(uuid.UUID(int=self.rng.getrandbits(128), version=4)),
            "resourceVersion": str(self.rng.randrange(10**6, 10**8)),
            "creationTimestamp": CREATED,
            "labels": {"app.kubernetes.io/name": name},
            "managedFields": [
                {
                    "manager": "kubectl",
                    "operation": "Update",
                    "apiVersion": api_version,
                    "time": CREATED,
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:app.kubernetes.io/name": {}}}},
                }
            ],
        }
        if namespace:
            metadata["namespace"] = namespace
        if owner is not None:
            metadata["ownerReferences"] = [
                {
                    "apiVersion": owner["apiVersion"],
                    "kind": owner["kind"],
                    "name": owner["metadata"]["name"],
                    "uid": owner["metadata"]["uid"],
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ]
        metadata["labels"] |= more.pop("labels", {})
        return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **more}

    # What a cluster has besides its pods.

    def cluster(self) -> Iterator[Document]:
        for namespace in ("default", "kube-system", "shop"):
            yield self.made(
                "v1", "Namespace", namespace, spec={"finalizers": ["kubernetes"]}, status={"phase": "Active"}
            )
            yield self.made("v1", "ServiceAccount", "default", namespace)
        yield self.made("v1", "ServiceAccount", "web", "shop")
        yield self.made(
            "scheduling.k8s.io/v1",
            "PriorityClass",
            "gold",
            value=1000,
            preemptionPolicy="PreemptLowerPriority",
        )
        yield self.made(
            "storage.k8s.io/v1",
            "StorageClass",
            "gp3",
            provisioner="ebs.csi.aws.com",
            reclaimPolicy="Delete",
            volumeBindingMode="WaitForFirstConsumer",
        )
        yield self.made("v1", "Secret", "db", "shop", type="Opaque", data={"password": "c2VjcmV0"})
        yield self.made("v1", "ConfigMap", "web", "shop", data={"a": "b"})
        yield self.made(
            "v1",
            "Service",
            "web",
            "shop",
            spec={
                "clusterIP": "172.20.7.8",
                "clusterIPs": ["172.20.7.8"],
                "type": "ClusterIP",
                "selector": {"app": "web-0"},
                "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
                "ipFamilies": ["IPv4"],
                "ipFamilyPolicy": "SingleStack",
                "internalTrafficPolicy": "Cluster",
                "sessionAffinity": "None",
            },
            status={"loadBalancer": {}},
        )
        yield self.made(
            "v1",
            "ResourceQuota",
            "all",
            "shop",
            spec={"hard": {"pods": "20000"}},
            status={"hard": {"pods": "20000"}, "used": {"pods": "200"}},
        )
        yield self.made(
            "policy/v1",
            "PodDisruptionBudget",
            "web-0",
            "shop",
            spec={"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web-0"}}},
            status={
                "currentHealthy": 20,
                "desiredHealthy": 19,
                "disruptionsAllowed": 1,
                "expectedPods": 20,
                "observedGeneration": 1,
            },
        )
        yield self.made(
            "coordination.k8s.io/v1", "Lease", "kube-scheduler", "kube-system", spec={"holderIdentity": "x"}
        )
        yield self.made("cert-manager.io/v1", "Certificate", "web", "shop", spec={"dnsNames": ["a.example"]})
        yield self.made(
            "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "policy", webhooks=[]
        )

    def nodes(self) -> Iterator[Document]:
        for index, name in enumerate(self.node_names):
            yield self.made("v1", "Node", name, **node_parts(name, index))

    # Workloads.

    def workloads(self, pods: int) -> Iterator[Document]:
        yield from self._daemons()
        yield from self._stateful()
        yield from self._job()
        left, index = pods - 3, 0
        while left > 0:
            yield from self._deployment(f"web-{index}", min(left, REPLICAS))
            left, index = left - REPLICAS, index + 1

    def _deployment(self, name: str, replicas: int) -> Iterator[Document]:
        digits = f"{self.rng.randrange(10**9):09d}"
        template = template_of({"app": name}, cpu="100m", memory="128Mi", account="web", priority="gold")
        counts = {"replicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas}
        deployment = self.made(
            "apps/v1",
            "Deployment",
            name,
            "shop",
            spec={"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template},
            status={**counts, "updatedReplicas": replicas, "observedGeneration": 3},
        )
        deployment["metadata"]["generation"] = 3
        deployment["metadata"]["annotations"] = {"deployment.kubernetes.io/revision": "2"}
        yield deployment
        labels = {"app": name, "pod-template-hash": digits}
        replica_set = self.made(
            "apps/v1",
            "ReplicaSet",
            f"{name}-{digits}",
            "shop",
            deployment,
            labels=labels,
            spec={
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {**template, "metadata": {"labels": labels}},
            },
            status={**counts, "fullyLabeledReplicas": replicas, "observedGeneration": 1},
        )
        replica_set["metadata"]["annotations"] = {
            "deployment.kubernetes.io/desired-replicas": str(replicas),
            "deployment.kubernetes.io/revision": "2",
        }
        yield replica_set
        for number in range(replicas):
            yield self._pod(f"{name}-{digits}-{number:05d}", "shop", replica_set, labels, template["spec"])

    def _daemons(self) -> Iterator[Document]:
        template = template_of({"app": "agent"}, cpu="50m", memory="64Mi")
        count = len(self.node_names)
        daemon_set = self.made(
            "apps/v1",
            "DaemonSet",
            "agent",
            "kube-system",
            spec={"selector": {"matchLabels": {"app": "agent"}}, "template": template},
            status={
                "currentNumberScheduled": count,
                "desiredNumberScheduled": count,
                "numberAvailable": count,
                "numberMisscheduled": 0,
                "numberReady": count,
                "observedGeneration": 1,
                "updatedNumberScheduled": count,
            },
        )
        daemon_set["metadata"]["generation"] = 1
        daemon_set["metadata"]["annotations"] = {"deprecated.daemonset.template.generation": "1"}
        yield daemon_set
        labels = {"app": "agent", "controller-revision-hash": "6d5f8b7c9", "pod-template-generation": "1"}
        # As the controller writes it: the template that replaces the present one.
        yield self.made(
            "apps/v1",
            "ControllerRevision",
            "agent-6d5f8b7c9",
            "kube-system",
            daemon_set,
            labels={"app": "agent", "controller-revision-hash": "6d5f8b7c9"},
            revision=1,
            data={"spec": {"template": {"$patch": "replace", **template}}},
        )
        for name in self.node_names:
            yield self._pod(
                f"agent-{self.node_names.index(name):05d}",
                "kube-system",
                daemon_set,
                labels,
                template["spec"],
                node=name,
            )

    def _stateful(self) -> Iterator[Document]:
        template = template_of({"app": "db"}, cpu="500m", memory="1Gi")
        stateful_set = self.made(
            "apps/v1",
            "StatefulSet",
            "db",
            "shop",
            spec={
                "replicas": 2,
                "selector": {"matchLabels": {"app": "db"}},
                "serviceName": "db",
                "template": template,
            },
            status={
                "replicas": 2,
                "readyReplicas": 2,
                "availableReplicas": 2,
                "currentReplicas": 2,
                "updatedReplicas": 2,
                "currentRevision": "db-5c8d",
                "updateRevision": "db-5c8d",
                "observedGeneration": 1,
                "collisionCount": 0,
            },
        )
        yield stateful_set
        yield self.made(
            "apps/v1",
            "ControllerRevision",
            "db-5c8d",
            "shop",
            stateful_set,
            labels={"app": "db", "controller.kubernetes.io/hash": "5c8d"},
            revision=1,
            data={"spec": {"template": {"$patch": "replace", **template}}},
        )
        for number in range(2):
            yield from self._volume(number)
            labels = {
                "app": "db",
                "controller-revision-hash": "db-5c8d",
                "statefulset.kubernetes.io/pod-name": f"db-{number}",
                "apps.kubernetes.io/pod-index": str(number),
            }
            spec = {
                **template["spec"],
                "hostname": f"db-{number}",
                "subdomain": "db",
                "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": f"data-db-{number}"}}],
            }
            yield self._pod(f"db-{number}", "shop", stateful_set, labels, spec)

    def _volume(self, number: int) -> Iterator[Document]:
        claim = self.made(
            "v1",
            "PersistentVolumeClaim",
            f"data-db-{number}",
            "shop",
            spec={
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "10Gi"}},
                "storageClassName": "gp3",
                "volumeMode": "Filesystem",
                "volumeName": f"pvc-{number}",
            },
            status={"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "10Gi"}},
        )
        claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        claim["metadata"]["finalizers"] = ["kubernetes.io/pvc-protection"]
        yield claim
        yield self.made(
            "v1",
            "PersistentVolume",
            f"pvc-{number}",
            spec={
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "10Gi"},
                "storageClassName": "gp3",
                "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": f"vol-{number}"},
                "volumeMode": "Filesystem",
                "persistentVolumeReclaimPolicy": "Delete",
                "claimRef": {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "namespace": "shop",
                    "name": f"data-db-{number}",
                    "uid": claim["metadata"]["uid"],
                },
            },
            status={"phase": "Bound"},
        )

    def _job(self) -> Iterator[Document]:
        job = self.made("batch/v1", "Job", "load", "shop")
        uid = job["metadata"]["uid"]
        labels = {
            "batch.kubernetes.io/controller-uid": uid,
            "batch.kubernetes.io/job-name": "load",
            "controller-uid": uid,
            "job-name": "load",
        }
        template = template_of(labels, cpu="100m", memory="64Mi")
        template["spec"]["restartPolicy"] = "Never"
        job["spec"] = {
            "parallelism": 1,
            "completions": 1,
            "backoffLimit": 6,
            "completionMode": "NonIndexed",
            "suspend": False,
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}},
            "template": template,
        }
        job["status"] = {"active": 1, "ready": 1, "startTime": STARTED, "uncountedTerminatedPods": {}}
        yield job
        pod = self._pod("load-x7k2p", "shop", job, labels, template["spec"])
        pod["metadata"]["finalizers"] = ["batch.kubernetes.io/job-tracking"]
        yield pod

    def _pod(
        self,
        name: str,
        namespace: str,
        owner: Document,
        labels: Mapping[str, str],
        spec: Mapping[str, Any],
        node: str = "",
    ) -> Document:
        node = node or min(self.pods_on, key=lambda each: self.pods_on[each])
        self.pods_on[node] += 1
        place = f"10.244.{self.node_names.index(node) % 256}.{1 + self.pods_on[node]}"
        pod = self.made("v1", "Pod", name, namespace, owner, labels=dict(labels))
        tolerations = [
            {
                "key": f"node.kubernetes.io/{key}",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            }
            for key in ("not-ready", "unreachable")
        ]
        pod["spec"] = {**spec, "nodeName": node, "tolerations": tolerations, "enableServiceLinks": True}
        pod["spec"].setdefault("serviceAccountName", "default")
        if "priorityClassName" in spec:
            pod["spec"] |= {"priority": 1000, "preemptionPolicy": "PreemptLowerPriority"}
        restarts = self.rng.choice((0, 0, 0, 1, 4))
        pod["status"] = {
            "phase": "Running",
            "qosClass": "Burstable",
            "startTime": STARTED,
            "hostIP": f"10.0.{self.node_names.index(node) // 256}.{self.node_names.index(node) % 256}",
            "podIP": place,
            "podIPs": [{"ip": place}],
            "conditions": [
                {"type": type_, "status": "True", "lastProbeTime": None, "lastTransitionTime": STARTED}
                for type_ in (
                    "PodReadyToStartContainers",
                    "Initialized",
                    "Ready",
                    "ContainersReady",
                    "PodScheduled",
                )
            ],
            "containerStatuses": [
                {
                    "name": "main",
                    "image": "registry.k8s.io/pause:3.10",
                    "imageID": f"registry.k8s.io/pause@sha256:{'a' * 64}",
                    "containerID": f"containerd://{self.rng.getrandbits(256):064x}",
                    "ready": True,
                    "started": True,
                    "restartCount": restarts,
                    "state": {"running": {"startedAt": STARTED}},
                    "lastState": {},
                    "allocatedResources": spec["containers"][0]["resources"]["requests"],
                    "resources": spec["containers"][0]["resources"],
                }
            ],
        }
        return pod
