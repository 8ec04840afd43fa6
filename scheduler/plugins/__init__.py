"""The in-tree plugins; `registry.py` is the table of them, `defaults.py` the default profile."""
