"""DynamicResources: a pod goes where the devices that its claims ask for can be allocated.

Start at `plugin.py`: the extension points. `pod_claims.py` finds a pod's claims, `tracker.py` knows what is
in use, `binding.py` writes allocations, `readiness.py` waits for devices, `extended.py` makes claims of
extended resources, `hints.py` says what wakes a pod. The search is `scheduler.plugins.device_allocation`.
"""

from scheduler.plugins.dynamic_resources.plugin import DynamicResources

__all__ = ["DynamicResources"]
