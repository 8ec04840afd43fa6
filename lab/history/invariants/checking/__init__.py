"""How an invariant reads a history and tells its violations."""
