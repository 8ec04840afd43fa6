"""The verbs of steps, one file each, or one for two inverse verbs: fields, performing, undoing, recording.

Start with `acting.base` (what a verb must have) and `table` (the list of verbs). docs/changing.md says how to
add one.
"""
