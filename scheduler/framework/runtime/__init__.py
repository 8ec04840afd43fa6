"""Profiles and their plugin sets: build, call and time plugins."""
