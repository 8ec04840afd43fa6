"""The kinds of the API group flowcontrol, each with its `RULES`; see `nominee.apiserver.kinds`."""
