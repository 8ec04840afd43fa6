"""Emulated versions and feature gates."""
