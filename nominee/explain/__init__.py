"""`nominee explain`: what the scheduler decides about a pod in a cluster that is only a file, and why.

Start at `verdict.explain`: it asks the scheduler's own framework and plugins. `world` makes a cluster of
manifests, `cases` reads files, `tables` shows the verdict to a person.
"""
