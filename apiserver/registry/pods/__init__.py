"""Pods: a strategy an endpoint (`strategy`, `resize`), and what is done to them (`binding`, `eviction`)."""
