"""VolumeBinding: find and bind the volumes of a pod's claims.

Start at `plugin.py`: the extension points. `binder.py` finds volumes for a node and writes the bindings,
`candidates.py` says which volumes and classes can serve a claim, `assumptions.py` keeps what is not written.
"""

from nominee.scheduler.plugins.volume_binding.plugin import VolumeBinding

__all__ = ["VolumeBinding"]
