"""Scales: the scale subresource of workloads as autoscaling/v1 shows it.

A Scale is not stored: `apiserver.registry.scale` makes it of its workload.
"""

from __future__ import annotations

from apiserver.printing.cells import age
from apiserver.printing.columns import AGE, NAME, Column, Columns, Row
from machinery.api.kinds import Kind
from machinery.api.pb import autoscaling_v1


def _row(obj: autoscaling_v1.Scale, now: float) -> Row:
    return Row([obj.metadata.name, obj.spec.replicas, obj.status.replicas, age(obj.metadata, now)])


SCALE = Kind("autoscaling", "v1", "Scale", "scales", autoscaling_v1.Scale, autoscaling_v1.Scale)
"""For its envelope."""
COLUMNS = Columns(
    (
        Column("Name", NAME.described),
        Column("Desired", "scalespec-autoscaling-v1#replicas", "integer"),
        Column("Available", "scalestatus-autoscaling-v1#replicas", "integer"),
        AGE,
    ),
    _row,
)
