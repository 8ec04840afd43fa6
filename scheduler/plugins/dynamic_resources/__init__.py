"""DynamicResources: place a pod where the devices of its claims can be allocated.

Start at `plugin.py`: the extension points. `pod_claims.py` finds a pod's claims, `tracker.py` keeps what is
in use, `claim_writes.py` writes allocations, `readiness.py` waits for devices, `extended.py` makes claims
of extended resources, `hints.py` has the queueing hints. `device_allocation/` is the search.
"""

from nominee.scheduler.plugins.dynamic_resources.plugin import DynamicResources

__all__ = ["DynamicResources"]
