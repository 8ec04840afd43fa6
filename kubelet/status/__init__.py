"""A pod's status as the kubelet writes it. Pure; start with `pod_status`."""
