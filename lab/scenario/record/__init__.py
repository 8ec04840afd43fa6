"""Record a user's actions in a cluster as a scenario. Start with `recorder`."""
