"""How steps act: their base, stages, waits and the processes that they reach."""
