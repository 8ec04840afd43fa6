"""Pods: `rules` is their row; a strategy and a validation for the pod and for each of its subresources."""

from nominee.apiserver.kinds.core.pods.rules import RULES

__all__ = ["RULES"]
