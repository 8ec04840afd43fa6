"""A component as a process: options, logging, signals, HTTP port, run file, health checks."""
