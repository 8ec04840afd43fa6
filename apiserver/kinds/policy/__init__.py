"""The kinds of the API group policy: a module for each, with its `RULES`; see `nominee.apiserver.kinds`."""
