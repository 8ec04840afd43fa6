"""Deletion of nodes: tainted in the loop, then checked, drained and deleted beside it. Pure.

`deletion_states` has the states of a node's deletion as a table, `node_deletion` carries out its effects as
orders. Start with `start_deletion`.
"""
