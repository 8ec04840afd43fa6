"""The kinds of the API group autoscaling: a module for each, with its `RULES`; see `apiserver.kinds`."""
