"""A small vertical autoscaler for `nominee vpa`: it resizes pods in place from an emulated usage trace.

`trace` reads the usage, `updater` decides (no I/O), `shell` lists, patches and
evicts. Source: vertical-pod-autoscaler, updater in the mode InPlaceOrRecreate.
"""
