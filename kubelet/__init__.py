"""The kubelet: one process that carries many nodes, runs their pods, and resizes them in place.

The cores are pure: `events` in, `instructions` out, over the state of a node (`node.state`). `allocation`
decides which pods a node admits and which resizes it allocates, `resize` has the states of a resize and the
order of its actuation, `runtime` emulates the containers, `status` builds pod statuses, `checkpoint`
is the format of what is kept on disk. `shell` is the I/O around them: start with `shell.process`.
"""
