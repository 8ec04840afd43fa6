"""Jobs: `rules` is their row, with their strategy; `specs`, `policies`, `indexes` and `status` check them."""

from nominee.apiserver.kinds.batch.jobs.rules import RULES

__all__ = ["RULES"]
