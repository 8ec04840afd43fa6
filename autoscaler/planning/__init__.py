"""Decisions of the loop's steps: snapshot, simulation, state of the groups, limits. Pure."""
