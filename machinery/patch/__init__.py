"""Patches of JSON documents: merge patches, strategic merge patches and how to compute them."""
