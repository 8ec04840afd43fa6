"""Invariants of claims: devices and volumes."""
