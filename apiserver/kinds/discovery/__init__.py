"""The kinds of the API group discovery, each with its `RULES`; see `nominee.apiserver.kinds`."""
