"""I/O of deployments: the deployment controller."""
