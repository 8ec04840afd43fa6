"""Record what a user does to a cluster as a scenario. Start with `recorder`."""
