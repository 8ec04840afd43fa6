"""The rules of every kind: what the fronts call.

Start reading at `registry` (the requests), `strategy` (what a kind may decide), `store` (optimistic
concurrency over storage) and `deletion`; `strategies` is the table of kinds, `pods` has the pod's endpoints.
`make_registry` puts it together for a server.
"""

from apiserver.process.bootstrap import bootstrap
from apiserver.registry.registry import Registry

__all__ = ["Registry", "bootstrap"]
