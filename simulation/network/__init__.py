"""gRPC between simulated processes: messages are bytes, and arrive after a delay that the seed gives.

`deliveries.py` has the delays, `call.py` is one call and how it finds its server. `channel.py` and
`server.py` are its ends, with the methods of grpc.aio that components use. `network.py` puts them together.
"""
