"""A process's HTTP server."""
