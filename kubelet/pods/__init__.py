"""The core's record of one pod, the states of it and of its resize, and their transitions. Pure.

Start with `states` (the table) and `record`; `resize_transitions` follows the tables of the resize.
"""
