"""Pods: the strategy of each endpoint (`strategy`, `resize`) and what is done to them (`binding`, `eviction`)."""
