"""The API server's options, named as kube-apiserver's where it has them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nominee.apiserver.access.options import OPEN_PORTS, AccessOptions


@dataclass(frozen=True, slots=True)
class Options:
    """The options as given; "" and empty sets are the defaults."""

    etcd_servers: str = ""
    etcd_ca: Path | None = None
    etcd_certificate: Path | None = None
    etcd_key: Path | None = None
    grpc_address: str = "127.0.0.1:0"
    rest_address: str = "127.0.0.1:0"
    enabled_admission: frozenset[str] = frozenset()
    disabled_admission: frozenset[str] = frozenset()
    event_ttl_seconds: float = 3600.0
    # 0 turns compaction off.
    compaction_seconds: float = 300.0
    requests_in_flight: int = 400
    mutating_requests_in_flight: int = 200
    priority_and_fairness: bool = True
    access: AccessOptions = OPEN_PORTS
    nominates_deferred_resizes: bool = False
    """An option of Nominee only."""
