"""A cell: its run and its evidence."""
