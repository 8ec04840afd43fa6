"""The clusters that a scenario can run on: real processes, or a simulation. Start with `cluster`."""
