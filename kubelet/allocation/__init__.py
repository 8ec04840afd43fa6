"""Which pods a node admits, and which resizes it allocates, and when. Pure.

Start with `manager`; `admission` decides about one pod beside the others.
"""
