"""A project with packages `scheduler`, `controllers`, `lab` and `k8s` of its own, and a scheduler plugin.

`python check.py DIR` in this folder runs a cluster with the plugin; it uses nothing of the tests.
"""
