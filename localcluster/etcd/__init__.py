"""Etcd as a component: `server` starts it, `members` has the addresses, `links` cuts members off from
each other.
"""
