"""Watches of the API server: streams, reflectors and informers."""
