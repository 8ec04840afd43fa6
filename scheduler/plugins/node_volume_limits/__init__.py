"""NodeVolumeLimits: keep the number of attached volumes within a node's limits.

Start at `plugin.py`: the extension points. `in_tree_volumes.py` names the CSI drivers of in-tree volumes.
"""

from nominee.scheduler.plugins.node_volume_limits.plugin import NodeVolumeLimits

__all__ = ["NodeVolumeLimits"]
