"""A resize of one pod: its states and conditions, its events' texts, the order of its actuation. Pure.

Start with `states` (the tables, which `nominee.kubelet.pods.resize_transitions` follows).
"""
