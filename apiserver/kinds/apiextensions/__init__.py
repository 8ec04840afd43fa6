"""The kinds of the API group apiextensions, each with its `RULES`; see `nominee.apiserver.kinds`."""
