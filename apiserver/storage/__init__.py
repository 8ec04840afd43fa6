"""Storage on etcd: each write is one transaction, with the keys and values of a real API server.

It knows nothing about kinds. Start reading at `interface.py` (which the registry uses), then
`etcd_storage.py` (reads and writes); `channel.py` is the connection, `leases.py` the shared leases of events.
"""
