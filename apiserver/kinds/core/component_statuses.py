"""ComponentStatuses: answered from health checks and never stored (kube-apiserver 1.36)."""

from __future__ import annotations

from typing import Final

from nominee.apiserver.printing.columns import NAME, Cells, Column, Columns
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.pb import core

HEALTHY: Final = "Healthy"
COMPONENT_STATUS: Final = Kind(
    "", "v1", "ComponentStatus", "componentstatuses", core.ComponentStatus, core.ComponentStatusList,
    namespaced=False, short_names=("cs",),
)  # fmt: skip


def _row(obj: core.ComponentStatus, now: float) -> Cells:
    for condition in obj.conditions:
        if condition.type == HEALTHY:
            status = HEALTHY if condition.status == "True" else "Unhealthy"
            return [status, condition.message, condition.error]
    return ["Unknown", "", ""]


COLUMNS: Final = Columns(
    _row,
    NAME,
    Column("Status", "Status of the component conditions"),
    Column("Message", "Message of the component conditions"),
    Column("Error", "Error of the component conditions"),
)
