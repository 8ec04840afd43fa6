"""The kinds of the core group (v1): a module for each, with its `RULES`; see `nominee.apiserver.kinds`."""
