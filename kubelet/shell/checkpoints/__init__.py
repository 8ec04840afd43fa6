"""Allocations on disk."""
