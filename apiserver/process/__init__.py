"""The API server as a process: options, start-up, health checks, compaction, the Service `kubernetes`.

`run` starts it, `server` puts it together.
"""
