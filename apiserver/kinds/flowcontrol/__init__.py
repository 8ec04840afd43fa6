"""The kinds of the API group flowcontrol: a module for each, with its `RULES`; see
`nominee.apiserver.kinds`.
"""
