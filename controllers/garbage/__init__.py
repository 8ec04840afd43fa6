"""Garbage: pods whose node is gone, objects whose owners are gone, namespaces that are being deleted.

`pod_gc`, `ownership` and `namespace_status` decide (pure); `pods`, `owners` and `namespaces` are the shells.
"""
