"""Services: their strategy, and the addresses and node ports that the API server gives them.

Start at `strategy`; `families` decides what is to be allocated, `allocation` gives it.
"""
