"""The kinds of the API group autoscaling: a module for each, with its `RULES`; see
`nominee.apiserver.kinds`.
"""
