"""Defaults of kinds that are only stored and watched (kube-apiserver 1.36)."""

from __future__ import annotations

from collections.abc import Iterable

from nominee.machinery.api.pb import autoscaling, batch, core, networking, workloads
from nominee.machinery.defaults import fields, pod
from nominee.machinery.features.gates import Gates, Version

_UTILIZATION_PERCENT = 80
_PERIOD_SECONDS = 15
_UP_POLICIES = (("Pods", 4), ("Percent", 100))
_DOWN_POLICIES = (("Percent", 100),)
AUTOSCALER_TOLERANCE_SINCE = Version(1, 35)
"""HPAConfigurableTolerance: off before."""


def autoscaler(obj: autoscaling.HorizontalPodAutoscaler, gates: Gates) -> None:
    """Fill in a HorizontalPodAutoscaler: without metrics it scales by the utilization of cpu."""
    spec = obj.spec
    fields.set_absent(spec, minReplicas=1)
    if not spec.metrics:
        metric = spec.metrics.add(type="Resource")
        metric.resource.name = "cpu"
        metric.resource.target.type = "Utilization"
        metric.resource.target.averageUtilization = _UTILIZATION_PERCENT
    if spec.HasField("behavior"):
        _scaling_rules(spec.behavior.scaleUp, _UP_POLICIES)
        fields.set_absent(spec.behavior.scaleUp, stabilizationWindowSeconds=0)
        # How long to wait before scaling down is the controller's own option.
        _scaling_rules(spec.behavior.scaleDown, _DOWN_POLICIES)


def _scaling_rules(rules: autoscaling.HPAScalingRules, policies: Iterable[tuple[str, int]]) -> None:
    fields.set_absent(rules, selectPolicy="Max")
    if not rules.policies:
        for kind, value in policies:
            rules.policies.add(type=kind, value=value, periodSeconds=_PERIOD_SECONDS)


def cron_job(obj: batch.CronJob, gates: Gates) -> None:
    """Fill in a CronJob."""
    spec = obj.spec
    fields.set_empty(spec, concurrencyPolicy="Allow")
    fields.set_absent(spec, suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)
    pod.pod_template(spec.jobTemplate.spec.template)


def ingress_class(obj: networking.IngressClass, gates: Gates) -> None:
    if obj.spec.HasField("parameters") and not obj.spec.parameters.HasField("scope"):
        obj.spec.parameters.scope = "Cluster"


def network_policy(obj: networking.NetworkPolicy, gates: Gates) -> None:
    """Fill in a NetworkPolicy: protocols of ports, and the policy types."""
    spec = obj.spec
    for ports in (*(rule.ports for rule in spec.ingress), *(rule.ports for rule in spec.egress)):
        for port in ports:
            fields.set_absent(port, protocol="TCP")
    if not spec.policyTypes:
        spec.policyTypes.extend(["Ingress", "Egress"] if spec.egress else ["Ingress"])


def endpoints(obj: core.Endpoints, gates: Gates) -> None:
    for subset in obj.subsets:
        for port in subset.ports:
            fields.set_empty(port, protocol="TCP")


def pod_template(obj: core.PodTemplate, gates: Gates) -> None:
    pod.pod_template(obj.template)


def pod_group(obj: workloads.PodGroup, gates: Gates) -> None:
    # Whether the field is known is for the registry to say.
    fields.set_absent(obj.spec, disruptionMode="Pod")
