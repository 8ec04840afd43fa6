"""Explain why a pod goes where it goes: the whole verdict of one cycle, without carrying anything out.

`verdict.explain` evaluates every node where a scheduling cycle would stop early. `nominee explain` shows it
for a cluster that is a file; the running scheduler serves it under `/debug/explain`.
"""
