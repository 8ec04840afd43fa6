"""The kubelet's I/O: watches in, patches and files out, around the pure core.

Start with `process` (what runs), then `agent` (one node) and `pod_worker` (one pod's steps).
"""
