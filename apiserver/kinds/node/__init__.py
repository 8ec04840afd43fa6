"""The kinds of the API group node: a module for each, with its `RULES`; see `nominee.apiserver.kinds`."""
