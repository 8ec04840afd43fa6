"""The kubelet: one process that carries many nodes, runs their pods, and resizes them in place.

The core is pure: `sync_loop.handle(node, event)` takes `events` and returns `instructions`. Behind it are
`node` (the state), `allocation` (which pods a node admits and which resizes it allocates), `pods` (the
record of a pod and its states), `pod_sync` (its syncs), `resize` (the states of a resize, the order of its
actuation) and `status`. `runtime` emulates the
containers, `checkpoint` is the format of what is kept on disk. `shell` performs the instructions: start with
`shell.process`. See docs/design/016-kubelet-core.md.
"""
