"""NodeResourcesFit and NodeResourcesBalancedAllocation: compare requests with nodes' resources.

Start at `plugin.py`: the extension points. `arguments.py` reads the plugins' arguments, `scoring.py` has the
scoring strategies.
"""

from nominee.scheduler.plugins.node_resources.plugin import NodeResourcesBalancedAllocation, NodeResourcesFit

__all__ = ["NodeResourcesBalancedAllocation", "NodeResourcesFit"]
