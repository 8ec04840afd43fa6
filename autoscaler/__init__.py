"""The cluster autoscaler: more nodes for pods that wait, fewer where they are not needed.

`planning/` decides (pure: snapshot in, decisions out) and simulates with the scheduler's own plugins; `loop`
is one look at the cluster, in upstream's eighteen steps; `actuation` drains and deletes; `shell/` has the
process, the informers and the provider's client; `cloud/` is the built-in provider. Start with `loop`.
"""
