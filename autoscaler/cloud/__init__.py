"""The built-in cloud: node groups whose machines appear after a delay, behind the external provider protocol.

`node_groups` reads what groups there are, `state` is the pure core (what exists, what may happen), `servicer`
speaks the protocol, `process` runs it and deletes Node objects of machines that are gone. Start with `state`.
"""
