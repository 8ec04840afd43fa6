"""How long a test waits for what must come: the one limit of all of them.

It is reached only where something is broken, so it is long: a machine with ten times as many busy processes
as cores passes too. What must *not* come within a time is no matter for it.
"""

from __future__ import annotations

PATIENCE_SECONDS = 120.0
