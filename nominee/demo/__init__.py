"""`nominee demo`: the KEPs' user stories, played on real processes, each step checked.

`stage` is the cluster with what a story needs of it; `narration` prints what happens as it happens; each
story is a file in `stories/`, written as a person would do it.
"""
