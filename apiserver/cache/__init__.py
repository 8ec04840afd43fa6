"""The watch cache: one etcd watch for all kinds, and consistent reads from memory.

Read `kind_cache` first (pure: one kind's objects and the window of its events), then `watch_cache` (the shell
that follows etcd) and `reads` (get, list and watch with resource versions and continue tokens).
"""
