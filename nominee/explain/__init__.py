"""`nominee explain`: the scheduler's decision about a pod, and its reasons.

The decision is the scheduler's own (`nominee.scheduler.explanation`, which also defines the output format).
Start with `explainer`: it explains the pods of a cluster that is a file. `files` reads the file, `what_if`
changes its manifests, `cluster` loads them; `live` asks a running scheduler; `tables` renders for a terminal.
"""
