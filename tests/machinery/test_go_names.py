"""The names of fields in Go, where they are not the JSON name with a capital (k8s.io/api 1.36)."""

from __future__ import annotations

import pytest

from nominee.machinery.wire.schema import messages


@pytest.mark.parametrize(
    ("message", "field", "go_name"),
    [
        ("core.v1.Container", "tty", "TTY"),
        ("core.v1.ContainerStatus", "imageID", "ImageID"),
        ("core.v1.ContainerStatus", "lastState", "LastTerminationState"),
        ("core.v1.CSIPersistentVolumeSource", "fsType", "FSType"),
        ("core.v1.Event", "reportingComponent", "ReportingController"),
        ("core.v1.FCVolumeSource", "wwids", "WWIDs"),
        ("core.v1.HTTPGetAction", "httpHeaders", "HTTPHeaders"),
        ("core.v1.HostAlias", "ip", "IP"),
        ("core.v1.ISCSIVolumeSource", "iqn", "IQN"),
        ("core.v1.ISCSIVolumeSource", "chapAuthDiscovery", "DiscoveryCHAPAuth"),
        ("core.v1.LinuxContainerUser", "gid", "GID"),
        ("core.v1.NodeSpec", "podCIDRs", "PodCIDRs"),
        ("core.v1.NodeSpec", "externalID", "DoNotUseExternalID"),
        ("core.v1.NodeSystemInfo", "osImage", "OSImage"),
        ("core.v1.ObjectReference", "apiVersion", "APIVersion"),
        ("core.v1.ObjectReference", "uid", "UID"),
        ("core.v1.PersistentVolumeSource", "awsElasticBlockStore", "AWSElasticBlockStore"),
        ("core.v1.PersistentVolumeSource", "cephfs", "CephFS"),
        ("core.v1.PersistentVolumeSource", "iscsi", "ISCSI"),
        ("core.v1.PersistentVolumeSource", "nfs", "NFS"),
        ("core.v1.PodSecurityContext", "seLinuxOptions", "SELinuxOptions"),
        ("core.v1.PodSpec", "dnsPolicy", "DNSPolicy"),
        ("core.v1.PodSpec", "hostPID", "HostPID"),
        ("core.v1.PodSpec", "os", "OS"),
        ("core.v1.PodSpec", "serviceAccount", "DeprecatedServiceAccount"),
        ("core.v1.PodSpec", "setHostnameAsFQDN", "SetHostnameAsFQDN"),
        ("core.v1.PodStatus", "podIPs", "PodIPs"),
        ("core.v1.PodStatus", "qosClass", "QOSClass"),
        ("core.v1.Probe", "handler", "ProbeHandler"),
        ("core.v1.ProbeHandler", "grpc", "GRPC"),
        ("core.v1.ProbeHandler", "httpGet", "HTTPGet"),
        ("core.v1.ProbeHandler", "tcpSocket", "TCPSocket"),
        ("core.v1.RBDVolumeSource", "monitors", "CephMonitors"),
        ("core.v1.RBDVolumeSource", "user", "RadosUser"),
        ("core.v1.QuobyteVolumeSource", "user", "User"),
        ("core.v1.ServiceSpec", "ipFamilies", "IPFamilies"),
        ("autoscaling.v1.HorizontalPodAutoscalerSpec", "targetCPUUtilizationPercentage",
         "TargetCPUUtilizationPercentage"),
        ("batch.v1.JobSpec", "ttlSecondsAfterFinished", "TTLSecondsAfterFinished"),
        ("networking.v1.IPBlock", "cidr", "CIDR"),
        ("networking.v1.IngressClassParametersReference", "aPIGroup", "APIGroup"),
        ("networking.v1.IngressRuleValue", "http", "HTTP"),
        ("networking.v1.IngressSpec", "tls", "TLS"),
        ("rbac.v1.PolicyRule", "apiGroups", "APIGroups"),
        ("rbac.v1.PolicyRule", "nonResourceURLs", "NonResourceURLs"),
        ("resource.v1.DeviceAttribute", "int", "IntValue"),
        ("resource.v1.DeviceSelector", "cel", "CEL"),
        ("resource.v1.NetworkDeviceData", "ips", "IPs"),
        ("storage.v1.CSIDriverSpec", "fsGroupPolicy", "FSGroupPolicy"),
        ("storage.v1.CSINodeDriver", "nodeID", "NodeID"),
    ],
)  # fmt: skip
def test_names_with_initialisms(message: str, field: str, go_name: str) -> None:
    names = {each.name: each.go_name for each in messages()[f"k8s.io.api.{message}"].fields}
    assert names[field] == go_name


def test_every_name_is_exported_and_stands_once_in_its_struct() -> None:
    for message in messages().values():
        names = [field.go_name for field in message.fields]
        assert all(name[0].isupper() and name.isalnum() for name in names), message.full_name
        assert len(names) == len(set(names)), message.full_name
