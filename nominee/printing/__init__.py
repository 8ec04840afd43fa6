"""Output of objects and tables on a terminal, as kubectl prints them."""
