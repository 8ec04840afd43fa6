"""Cluster addresses and node ports of Services.

Start reading at `allocation.py`; `addresses.py` and `node_ports.py` are its pure parts, `repair.py` fixes
what crashed servers left behind. The strategy of Services is in `apiserver/kinds/core/services/`.
"""
