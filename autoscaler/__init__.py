"""The cluster autoscaler: adds nodes for pending pods, and deletes nodes that are not needed.

`loop` is one loop, in the steps of upstream's RunOnce; start there. `steps/` has each step, `planning/` what
the steps decide with, `actuation/` the deletion of a node: all of it is pure, and yields `orders`. `shell/`
has the executor of the orders, the process and its clients; `cloud/` is the built-in cloud provider.
"""
