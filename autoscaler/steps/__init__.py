"""The steps of a loop, one in each file, named after upstream's functions. `nominee.autoscaler.loop` has
their order.

A step reads and changes the state and the loop's context, and yields orders. It has no I/O.
"""
