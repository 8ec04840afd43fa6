"""The scheduler as a process: wiring, informers, debug endpoints."""
