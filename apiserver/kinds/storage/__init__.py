"""The kinds of the API group storage: a module for each, with its `RULES`; see `nominee.apiserver.kinds`."""
