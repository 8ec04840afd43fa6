"""PodTopologySpread: spread pods over domains.

Start at `plugin.py`: the extension points. `constraints.py` reads the constraints of a pod and the defaults,
`counts.py` has the pods by domain.
"""

from nominee.scheduler.plugins.pod_topology_spread.plugin import PodTopologySpread

__all__ = ["PodTopologySpread"]
