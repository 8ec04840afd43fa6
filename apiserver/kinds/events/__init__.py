"""The kinds of the API group events: a module for each, with its `RULES`; see `nominee.apiserver.kinds`."""
