"""The emulated container runtime: the containers of a pod as values, and what changes them. Pure.

Start with `emulated_runtime`; `adoption` reads containers back from a pod's status.
"""
