"""Rows of Tables, as kube-apiserver 1.36 prints them, and the descriptions of their columns."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.apiserver.fronts.rest.answers.tables import definitions
from nominee.apiserver.kinds.table import RULES, rules_of
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import Kind
from nominee.machinery.wire import codec

AGED = {"name": "x", "creationTimestamp": "2026-01-01T00:00:00Z"}
NOW = 1_767_225_600.0 + 3 * 3600
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def _addresses(*ips: str) -> list[dict[str, str]]:
    return [{"ip": ip} for ip in ips]


@pytest.mark.parametrize(
    ("kind", "fields", "cells"),
    [
        (kinds.ENDPOINTS, {}, ["x", "<none>", "3h"]),
        (
            kinds.ENDPOINTS,
            {
                "subsets": [
                    {"addresses": _addresses("1.1.1.1", "2.2.2.2"), "ports": [{"port": 80}, {"port": 81}]}
                ]
            },
            ["x", "1.1.1.1:80,2.2.2.2:80,1.1.1.1:81 + 1 more...", "3h"],
        ),
        (
            kinds.ENDPOINTS,
            {"subsets": [{"addresses": _addresses("fd00::1"), "ports": [{"port": 80}]}]},
            ["x", "[fd00::1]:80", "3h"],
        ),
        (kinds.ENDPOINTS, {"subsets": [{"addresses": _addresses("1.1.1.1")}]}, ["x", "1.1.1.1", "3h"]),
        (kinds.POD_TEMPLATE, {"template": TEMPLATE}, ["x", "c", "i", "a=b"]),
        (kinds.CONTROLLER_REVISION, {"revision": 3}, ["x", "<none>", 3, "3h"]),
        (
            kinds.CRON_JOB,
            {
                "spec": {
                    "schedule": "* * * * *",
                    "suspend": False,
                    "jobTemplate": {"spec": {"template": TEMPLATE}},
                },
                "status": {"active": [{}], "lastScheduleTime": "2026-01-01T02:59:00Z"},
            },
            ["x", "* * * * *", "<none>", "False", 1, "60s", "3h", "c", "i", "<none>"],
        ),
        (
            kinds.HORIZONTAL_POD_AUTOSCALER,
            {
                "spec": {
                    "scaleTargetRef": {"kind": "Deployment", "name": "web"},
                    "minReplicas": 1,
                    "maxReplicas": 3,
                    "metrics": [
                        {
                            "type": "Resource",
                            "resource": {
                                "name": "cpu",
                                "target": {"type": "Utilization", "averageUtilization": 80},
                            },
                        }
                    ],
                }
            },
            ["x", "Deployment/web", "cpu: <unknown>/80%", "1", 3, 0, "3h"],
        ),
        (
            kinds.HORIZONTAL_POD_AUTOSCALER,
            {
                "spec": {
                    "scaleTargetRef": {"kind": "Deployment", "name": "web"},
                    "maxReplicas": 3,
                    "metrics": [
                        {"type": "Pods", "pods": {"target": {"type": "AverageValue", "averageValue": "5"}}},
                        {"type": "External", "external": {"target": {"type": "Value", "value": "9"}}},
                        {"type": "Other"},
                    ],
                },
                "status": {"currentMetrics": [{"type": "Pods", "pods": {"current": {"averageValue": "4"}}}]},
            },
            ["x", "Deployment/web", "4/5, <unknown>/9 + 1 more...", "<unset>", 3, 0, "3h"],
        ),
        (
            kinds.HORIZONTAL_POD_AUTOSCALER,
            {
                "spec": {
                    "scaleTargetRef": {"kind": "Deployment", "name": "web"},
                    "maxReplicas": 3,
                    "metrics": [
                        {
                            "type": "ContainerResource",
                            "containerResource": {
                                "name": "memory",
                                "container": "c",
                                "target": {"type": "Utilization"},
                            },
                        },
                        {
                            "type": "Object",
                            "object": {"target": {"type": "AverageValue", "averageValue": "2"}},
                        },
                    ],
                },
                "status": {
                    "currentMetrics": [
                        {
                            "type": "ContainerResource",
                            "containerResource": {"current": {"averageUtilization": 7}},
                        }
                    ]
                },
            },
            ["x", "Deployment/web", "memory: 7%/<auto>, <unknown>/2 (avg)", "<unset>", 3, 0, "3h"],
        ),
        (
            kinds.INGRESS,
            {"spec": {"rules": [{"host": f"h{n}"} for n in range(5)], "tls": [{}], "ingressClassName": "c"}},
            ["x", "c", "h0,h1,h2 + 2 more...", "", "80, 443", "3h"],
        ),
        (
            kinds.INGRESS,
            {"status": {"loadBalancer": {"ingress": [{"hostname": "a-very-long-host.example.com"}]}}},
            ["x", "<none>", "*", "a-very-long-host.example.com", "80", "3h"],
        ),
        (
            kinds.INGRESS,
            {
                "spec": {"rules": [{"host": "c"}, {}, {"host": "a"}, {"host": "b"}, {}]},
                "status": {"loadBalancer": {"ingress": [{"ip": "2.2.2.2"}, {"ip": "1.1.1.1"}, {}]}},
            },
            ["x", "<none>", "c,a,b + 2 more...", "1.1.1.1,2.2.2.2", "80", "3h"],
        ),
        (
            kinds.INGRESS_CLASS,
            {"spec": {"controller": "c", "parameters": {"apiGroup": "g", "kind": "K", "name": "n"}}},
            ["x", "c", "K.g/n", "3h"],
        ),
        (
            kinds.NETWORK_POLICY,
            {"spec": {"podSelector": {"matchLabels": {"a": "b"}}}},
            ["x", "a=b", "3h"],
        ),
        (
            kinds.IP_ADDRESS,
            {"spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "k"}}},
            ["x", "services/default/k", "3h"],
        ),
        (
            kinds.SERVICE_CIDR,
            {"spec": {"cidrs": ["10.0.0.0/16", "fd00::/108"]}},
            ["x", "10.0.0.0/16,fd00::/108", "3h"],
        ),
        (kinds.RUNTIME_CLASS, {"handler": "runc"}, ["x", "runc", "3h"]),
        (kinds.VOLUME_ATTRIBUTES_CLASS, {"driverName": "d"}, ["x", "d", "3h"]),
    ],
)
def test_cells(kind: Kind[Any], fields: dict[str, Any], cells: list[Any]) -> None:
    obj = codec.from_json(kind.message, {"metadata": AGED, **fields})
    columns = rules_of(kind).columns
    found = columns.row(obj, NOW).cells
    assert found == cells
    assert len(columns.columns) == len(found)


def test_every_column_is_described() -> None:
    for kind, rules in RULES.items():
        for column in definitions(rules.columns):
            assert column["description"], (kind, column["name"])
