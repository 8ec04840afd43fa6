"""`nominee demo`: the user stories of the KEPs, run on real processes, with a check of each step.

`stage` is the cluster and the operations that a story needs; `narration` prints what happens; each story is a
file in `stories/`.
"""
