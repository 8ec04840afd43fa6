"""The kinds of the API group scheduling, each with its `RULES`; see `nominee.apiserver.kinds`."""
