"""Services: `rules` is their row; `carry_over` and `families` prepare, `validation` and `addresses` check."""

from nominee.apiserver.kinds.core.services.rules import RULES

__all__ = ["RULES"]
