"""Which kinds a PUT needs a resourceVersion for, and which it creates where there is none.

Source: kube-apiserver 1.36, AllowUnconditionalUpdate and AllowCreateOnUpdate of each kind's strategy.
"""

from __future__ import annotations

from typing import Any

from machinery.api import kinds
from machinery.api.kinds import Kind

NEEDS_RESOURCE_VERSION: frozenset[Kind[Any]] = frozenset(
    {
        kinds.CSI_DRIVER,
        kinds.CSI_NODE,
        kinds.CSI_STORAGE_CAPACITY,
        kinds.LEASE,
        kinds.POD_DISRUPTION_BUDGET,
        kinds.RUNTIME_CLASS,
        kinds.SERVICE_ACCOUNT,
        kinds.VOLUME_ATTACHMENT,
    }
)
CREATED_BY_UPDATE: frozenset[Kind[Any]] = frozenset(
    {
        kinds.CLUSTER_ROLE,
        kinds.CLUSTER_ROLE_BINDING,
        kinds.ENDPOINTS,
        kinds.EVENT,
        kinds.EVENTS_EVENT,
        kinds.LEASE,
        kinds.LIMIT_RANGE,
        kinds.ROLE,
        kinds.ROLE_BINDING,
        kinds.RUNTIME_CLASS,
        kinds.SERVICE,
    }
)
