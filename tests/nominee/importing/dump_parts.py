"""Parts of the dumps of real clusters (`dumps`): pod templates, and the specs and statuses of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Document = dict[str, Any]
CREATED = "2025-03-01T08:00:00Z"
STARTED = "2025-03-02T09:00:00Z"
VERSION = "v1.36.2-eks-1234567"


def template_of(
    labels: Mapping[str, str], *, cpu: str, memory: str, account: str = "default", priority: str = ""
) -> Document:
    """Return the template of a workload's pods."""
    container = {
        "name": "main",
        "image": "registry.k8s.io/pause:3.10",
        "imagePullPolicy": "IfNotPresent",
        "resources": {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}},
        "env": [{"name": f"SETTING_{index}", "value": "some value"} for index in range(6)],
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }
    spec: Document = {
        "containers": [container],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "serviceAccount": account,
        "serviceAccountName": account,
        "terminationGracePeriodSeconds": 30,
    }
    if priority:
        spec["priorityClassName"] = priority
    return {"metadata": {"labels": dict(labels)}, "spec": spec}


def node_parts(name: str, index: int) -> Document:
    """Return labels, spec and status of a node."""
    zone = f"eu-central-1{'abc'[index % 3]}"
    node: Document = {
        "labels": {
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "topology.kubernetes.io/zone": zone,
            "topology.kubernetes.io/region": "eu-central-1",
            "node.kubernetes.io/instance-type": "m7i.2xlarge",
            "pool": "spot" if index % 10 == 9 else "on-demand",
        },
        "spec": {
            "providerID": f"aws:///{zone}/i-{index:017x}",
            "podCIDR": f"10.244.{index % 256}.0/24",
            "podCIDRs": [f"10.244.{index % 256}.0/24"],
        },
        "status": {
            "capacity": {"cpu": "8", "memory": "32386544Ki", "pods": "58", "ephemeral-storage": "83873772Ki"},
            "allocatable": {
                "cpu": "7910m",
                "memory": "31297008Ki",
                "pods": "58",
                "ephemeral-storage": "76224326324",
            },
            "addresses": [
                {"type": "InternalIP", "address": f"10.0.{index // 256}.{index % 256}"},
                {"type": "Hostname", "address": name},
            ],
            "conditions": [
                {
                    "type": type_,
                    "status": status,
                    "reason": reason,
                    "message": "",
                    "lastHeartbeatTime": STARTED,
                    "lastTransitionTime": CREATED,
                }
                for type_, status, reason in (
                    ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
                    ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
                    ("PIDPressure", "False", "KubeletHasSufficientPID"),
                    ("Ready", "True", "KubeletReady"),
                )
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {
                "kubeletVersion": VERSION,
                "osImage": "Bottlerocket OS 1.40",
                "kernelVersion": "6.12.20",
                "operatingSystem": "linux",
                "architecture": "amd64",
                "containerRuntimeVersion": "containerd://2.0.5",
                "machineID": "0" * 32,
                "systemUUID": "0",
                "bootID": "0",
                "kubeProxyVersion": "",
            },
            "images": [{"names": ["registry.k8s.io/pause:3.10"], "sizeBytes": 320368}],
        },
    }
    if index % 10 == 9:
        node["spec"]["taints"] = [{"key": "spot", "value": "true", "effect": "PreferNoSchedule"}]
    return node
