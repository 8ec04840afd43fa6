"""The kinds of the API group batch: a module for each, with its `RULES`; see `nominee.apiserver.kinds`."""
