"""The registry: every request about objects, called by the request chain.

Start reading at `registry.py` (the requests), then `store.py` (optimistic concurrency over storage) and
`deletions/deletion.py`. `pods/` has binding and eviction, `services/` the addresses and node ports. The strategies of
kinds are in `apiserver/kinds/`.
"""
