"""Bytes over etcd: one transaction a write, keys and values as a real API server lays them out.

Knows nothing of the kinds' rules. Start reading at `interface` (what the registry builds on), then
`etcd_storage` (reads and writes); `channel` is the connection, `leases` the shared leases of events.
"""
