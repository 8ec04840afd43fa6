"""The kinds of the API group certificates: a module for each, with its `RULES`; see
`nominee.apiserver.kinds`.
"""
