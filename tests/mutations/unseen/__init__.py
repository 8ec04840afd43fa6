"""Mutations written from the product alone, by an author who had not read the lab.

`table` joins them; there is a file for each component. They measure the lab's checks: nothing in the lab may
be tuned for them.
"""
