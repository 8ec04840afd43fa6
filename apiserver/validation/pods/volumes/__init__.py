"""Volumes of a pod."""
