"""The in-tree plugins, one in each file; `registry.py` is the table of them, and has the default profile."""
