"""The kinds of the API group scheduling: a module for each, with its `RULES`; see
`nominee.apiserver.kinds`.
"""
