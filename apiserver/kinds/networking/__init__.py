"""The kinds of the API group networking: a module for each, with its `RULES`; see
`nominee.apiserver.kinds`.
"""
