"""Admission plugins: they change or refuse a write after authorization.

`chain.py` runs the plugins in upstream's order. Each plugin has a file with upstream's name. Start reading at
`interface.py`.
"""
