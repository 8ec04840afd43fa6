"""Scales: the scale subresource of workloads as autoscaling/v1 shows it.

A Scale is not stored: `nominee.apiserver.registry.scale` makes it of its workload.
"""

from __future__ import annotations

from nominee.apiserver.printing.columns import AGE, NAME, Cells, Column, Columns
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.pb import autoscaling_v1


def _row(obj: autoscaling_v1.Scale, now: float) -> Cells:
    return [obj.metadata.name, obj.spec.replicas, obj.status.replicas]


SCALE = Kind("autoscaling", "v1", "Scale", "scales", autoscaling_v1.Scale, autoscaling_v1.Scale)
"""For its envelope."""
COLUMNS = Columns(
    _row,
    Column("Name", NAME.described),
    Column("Desired", "scalespec-autoscaling-v1#replicas", "integer"),
    Column("Available", "scalestatus-autoscaling-v1#replicas", "integer"),
    AGE,
)
