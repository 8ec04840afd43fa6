"""A resize of one pod: its states and conditions, its events, and the order of its actuation. Pure.

Start with `states` (the tables) and `transitions` (which follows them).
"""
