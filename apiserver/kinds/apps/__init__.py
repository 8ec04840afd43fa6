"""The kinds of the API group apps: a module for each, with its `RULES`; see `nominee.apiserver.kinds`."""
