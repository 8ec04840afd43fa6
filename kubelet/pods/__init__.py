"""What the kubelet does with one pod: its states, and the syncs of its pod worker. Pure.

Start with `states` (the table) and `sync` (which follows it); `run_steps`, `resize_step`, `stop_steps` and
`api_steps` are the steps, `record` is what is kept of a pod.
"""
