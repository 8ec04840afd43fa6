"""The kinds of the API group resource: a module for each, with its `RULES`; see `apiserver.kinds`."""
