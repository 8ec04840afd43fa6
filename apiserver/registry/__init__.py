"""The rules of every kind: what the request chain calls.

Start reading at `registry` (the requests), `strategy` (what a kind may decide), `store` (optimistic
concurrency over storage) and `deletion`; `strategies` is the table of kinds, `pods` has the pod's endpoints.
"""
