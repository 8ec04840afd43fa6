"""Verbs on processes: start, stop, restart, kill, pause, resume."""
