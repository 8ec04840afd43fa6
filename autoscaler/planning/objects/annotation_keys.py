"""Annotations and labels that the autoscaler reads or sets. Source: cluster-autoscaler 1.36."""

from __future__ import annotations

PREFIX = "cluster-autoscaler.kubernetes.io/"
# Pods
SAFE_TO_EVICT = f"{PREFIX}safe-to-evict"
SAFE_TO_EVICT_LOCAL_VOLUMES = f"{PREFIX}safe-to-evict-local-volumes"
POD_SCALE_UP_DELAY = f"{PREFIX}pod-scale-up-delay"
DAEMONSET_POD = f"{PREFIX}daemonset-pod"
ENABLE_DS_EVICTION = f"{PREFIX}enable-ds-eviction"
CONFIG_MIRROR = "kubernetes.io/config.mirror"
CONFIG_SOURCE = "kubernetes.io/config.source"
# Nodes
SCALE_DOWN_DISABLED = f"{PREFIX}scale-down-disabled"
DELAY_DELETION_PREFIX = f"delay-deletion.{PREFIX}"
UPCOMING_NODE = "cluster-autoscaler.k8s.io/upcoming-node"
HOSTNAME_LABEL = "kubernetes.io/hostname"
GPU_LABEL = "nominee.dev/gpu"
# The status ConfigMap
LAST_UPDATED = f"{PREFIX}last-updated"
