"""ComponentStatuses: answered from health checks and never stored (kube-apiserver 1.36)."""

from __future__ import annotations

from typing import Final

from nominee.apiserver.printing.columns import NAME, Column, Columns, Row
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.pb import core

HEALTHY: Final = "Healthy"
COMPONENT_STATUS: Final = Kind(
    "", "v1", "ComponentStatus", "componentstatuses", core.ComponentStatus, core.ComponentStatusList,
    namespaced=False, short_names=("cs",),
)  # fmt: skip


def _row(obj: core.ComponentStatus, now: float) -> Row:
    del now
    for condition in obj.conditions:
        if condition.type == HEALTHY:
            status = HEALTHY if condition.status == "True" else "Unhealthy"
            return Row([obj.metadata.name, status, condition.message, condition.error])
    return Row([obj.metadata.name, "Unknown", "", ""])


COLUMNS: Final = Columns(
    (
        NAME,
        Column("Status", "Status of the component conditions"),
        Column("Message", "Message of the component conditions"),
        Column("Error", "Error of the component conditions"),
    ),
    _row,
)
