"""PodMetrics of metrics.k8s.io: a kind that the API server lists, and does not store."""

from __future__ import annotations

from typing import Final

from nominee.machinery.api.kinds import Kind
from nominee.pb.k8s.io.metrics.pkg.apis.metrics.v1beta1 import generated_pb2 as metrics

PodMetrics = metrics.PodMetrics
KIND: Final = Kind("metrics.k8s.io", "v1beta1", "PodMetrics", "pods", PodMetrics, metrics.PodMetricsList)
