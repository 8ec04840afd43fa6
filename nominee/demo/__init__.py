"""`nominee demo`: the user stories of the KEPs, which are files of the folder `scenarios`, on one cluster.

`plugins` has a scheduler plugin that the stories use.
"""
