"""The kinds of the API group resource: a module for each, with its `RULES`; see `nominee.apiserver.kinds`."""
