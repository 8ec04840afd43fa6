"""The base of invariants: a checker, its evidence, and the states that several need."""
