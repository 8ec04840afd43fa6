"""The in-tree plugins, one in each file or folder; `registry.py` is the table of them, in default order."""
