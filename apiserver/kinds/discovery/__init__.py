"""The kinds of the API group discovery: a module for each, with its `RULES`; see
`nominee.apiserver.kinds`.
"""
