"""The kinds of the API group rbac: a module for each, with its `RULES`; see `nominee.apiserver.kinds`."""
