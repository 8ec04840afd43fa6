"""The watch cache: one etcd watch for all kinds, and consistent reads from memory.

Start reading at `kind_cache.py` (pure: the objects of one kind and the window of its events).
`watch_cache.py` is the shell that follows etcd; `reads.py` has get, list and watch with resource versions and
continue tokens; `stored_objects.py` makes objects of etcd's values.
"""
