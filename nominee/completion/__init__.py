"""Completion of words in a shell (the Tab key).

`candidates` has the words (components, versions, gates, failpoints), `shells` makes click's completion work
with values such as `scheduler=Gate=true`.
"""
