"""An etcd in memory, as far as the API server uses one: keys with history, transactions, watches, leases.

`store.py` is the data, `transactions.py` the requests, `service.py` the gRPC services. A test plays the same
requests on this and on a real etcd.
"""
