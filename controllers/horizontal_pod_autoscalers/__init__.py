"""HorizontalPodAutoscalers: the replicas of a workload by the usage of its pods.

`replica_calculator` proposes replicas for one metric, `normalization` limits a proposal by spec.behavior and
the last recommendations, `autoscaling` decides by all metrics and keeps conditions and events.

Source: kube-controller-manager 1.36, pkg/controller/podautoscaler.
"""
