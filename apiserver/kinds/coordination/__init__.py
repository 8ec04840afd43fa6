"""The kinds of the API group coordination: a module for each, with its `RULES`; see
`nominee.apiserver.kinds`.
"""
