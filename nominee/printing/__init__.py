"""How objects and tables look on a terminal: plain columns, as kubectl prints them."""
