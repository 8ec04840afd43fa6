"""Options of `nominee up`, and the file that keeps them."""
