"""The kinds of the API group autoscaling, each with its `RULES`; see `nominee.apiserver.kinds`."""
