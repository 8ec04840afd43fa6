"""KubeSchedulerConfiguration: reading it, its profiles, and the rules of its fields."""
