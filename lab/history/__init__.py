"""Every write of a cluster, read from etcd: watch it live, keep it in a file, read it later.

`revision.py` has the value that all readers get; start there. `fold.py` makes revisions from changes of keys,
`etcd_observer.py` reads the changes from etcd, `history_file.py` keeps them.
"""
