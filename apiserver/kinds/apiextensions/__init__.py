"""The kinds of the API group apiextensions: a module for each, with its `RULES`; see
`nominee.apiserver.kinds`.
"""
