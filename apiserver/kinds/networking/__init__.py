"""The kinds of the API group networking, each with its `RULES`; see `nominee.apiserver.kinds`."""
