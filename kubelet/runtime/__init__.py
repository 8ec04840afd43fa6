"""The emulated container runtime: the containers of a pod as values, and their changes. Pure.

Start with `emulated_runtime`; `adoption` reads containers back from a pod's status.
"""
