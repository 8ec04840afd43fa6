"""`nominee chaos`: explorations and random runs."""
