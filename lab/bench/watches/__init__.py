"""The benchmark's watchers."""
