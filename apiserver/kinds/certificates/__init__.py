"""The kinds of the API group certificates, each with its `RULES`; see `nominee.apiserver.kinds`."""
