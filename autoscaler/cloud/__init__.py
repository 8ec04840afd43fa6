"""The built-in cloud provider: node groups whose instances run after a delay, behind the gRPC protocol.

`node_groups` reads the groups from a file, `state` is the pure core (instances and their states), `servicer`
implements the protocol, `access` authorizes its clients, `process` runs it and deletes the Node objects of
deleted instances. Start with `state`.
"""
