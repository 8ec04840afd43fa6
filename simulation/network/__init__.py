"""gRPC between simulated processes: messages are bytes, and arrive after a delay that the seed gives.

`network.py` knows the servers, delays and faults; `call.py` is one call, `channel.py` and `server.py` its
ends, with the methods of grpc.aio that the components use.
"""
