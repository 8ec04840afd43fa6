"""A whole cluster in one process, on a simulated clock and network: seeded, exactly repeatable, and fast.

The components run unchanged, from their command lines. `simulation.py` starts and kills them; `event_loop/`
has the loop whose time jumps; `network/` carries gRPC calls; `etcd/` stands for etcd; docs/simulation.md.
"""
