"""The API server as a process: options, start-up, health checks, compaction, the Service `kubernetes`.

`run.py` starts it, `wiring.py` builds its parts from the options, `server.py` runs them.
"""
