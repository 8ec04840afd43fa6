"""The API server as a process: options, start-up, health checks, compaction, the Service `kubernetes`.

`run.py` starts it, `wiring.py` builds the server from the options, `server.py` runs its parts.
"""
