"""What the steps of the loop decide with: snapshot, simulation, state of the groups, limits. Pure."""
