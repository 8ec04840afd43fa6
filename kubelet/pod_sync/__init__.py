"""The syncs of one pod by its pod worker. Pure.

Start with `sync`, which follows the table of `nominee.kubelet.pods.states`; `run_steps`, `resize_step`,
`stop_steps` and `api_steps` are the steps.
"""
