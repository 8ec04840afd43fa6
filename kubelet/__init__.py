"""The kubelet: one process that carries many nodes, runs their pods, and resizes them in place.

`allocation` is the heart, a pure core: which pods a node takes and which resizes it allocates (`events` in,
`actions` out, over a `node_state`). `actuation` orders how a resize is put into force, `runtime` emulates the
containers, `checkpoint` keeps both on disk. `shell` is the I/O around them: start with `shell.process`.
"""
