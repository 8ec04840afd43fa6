"""`nominee explain`: what the scheduler decides about a pod in a cluster that is only a file, and why.

The verdict is the scheduler's own (`scheduler.explanation`). Here `world` makes a cluster of
manifests, `cases` reads files, `tables` shows the verdict to a person.
"""
