"""The kinds of the API group coordination, each with its `RULES`; see `nominee.apiserver.kinds`."""
