"""Defaults of kinds that are only stored and watched."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import Kind
from nominee.machinery.defaults import apply
from nominee.machinery.features.gates import Gates, Version
from nominee.machinery.wire import codec

CONTAINERS = [{"name": "c", "image": "i"}]


@pytest.mark.parametrize(
    ("kind", "given", "path", "want"),
    [
        (kinds.HORIZONTAL_POD_AUTOSCALER, {"spec": {"maxReplicas": 3}}, ("spec", "minReplicas"), 1),
        (
            kinds.HORIZONTAL_POD_AUTOSCALER,
            {"spec": {"maxReplicas": 3}},
            ("spec", "metrics", 0, "resource", "target", "averageUtilization"),
            80,
        ),
        (kinds.CRON_JOB, {"spec": {"schedule": "* * * * *"}}, ("spec", "concurrencyPolicy"), "Allow"),
        (
            kinds.CRON_JOB,
            {"spec": {"jobTemplate": {"spec": {"template": {"spec": {"containers": CONTAINERS}}}}}},
            ("spec", "jobTemplate", "spec", "template", "spec", "dnsPolicy"),
            "ClusterFirst",
        ),
        (kinds.NETWORK_POLICY, {"spec": {"podSelector": {}}}, ("spec", "policyTypes"), ["Ingress"]),
        (
            kinds.NETWORK_POLICY,
            {"spec": {"egress": [{"ports": [{"port": 80}]}]}},
            ("spec", "policyTypes"),
            ["Ingress", "Egress"],
        ),
        (
            kinds.NETWORK_POLICY,
            {"spec": {"egress": [{"ports": [{"port": 80}]}]}},
            ("spec", "egress", 0, "ports", 0, "protocol"),
            "TCP",
        ),
        (
            kinds.ENDPOINTS,
            {"subsets": [{"ports": [{"port": 1}]}]},
            ("subsets", 0, "ports", 0, "protocol"),
            "TCP",
        ),
        (
            kinds.POD_TEMPLATE,
            {"template": {"spec": {"containers": CONTAINERS}}},
            ("template", "spec", "containers", 0, "imagePullPolicy"),
            "Always",
        ),
    ],
)
def test_what_is_filled_in(
    kind: Kind[Any], given: dict[str, Any], path: tuple[str | int, ...], want: Any
) -> None:
    obj: Any = codec.from_json(kind.message, given)
    apply(kind, obj, Gates("apiserver", Version(1, 36)))
    found: Any = codec.to_json(obj)
    for step in path:
        found = found[step]
    assert found == want
