"""InterPodAffinity: place a pod near, or away from, pods that its terms or theirs select.

Start at `plugin.py`: the extension points. `existing_terms.py` has the terms of pods on nodes,
`pod_queries.py` and `pod_groups.py` the pods that match a pending pod's terms, `node_counts.py` and
`topology_counts.py` the numbers by node and by domain, `hints.py` the queueing hints.
"""

from nominee.scheduler.plugins.inter_pod_affinity.plugin import InterPodAffinity

__all__ = ["InterPodAffinity"]
