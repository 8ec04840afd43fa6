"""What the core keeps of one pod, the states of it and of its resize, and what moves it between them. Pure.

Start with `states` (the table) and `record`; `transitions` and `resize_transitions` follow the tables.
"""
