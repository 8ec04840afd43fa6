"""Every golden case of the pod registry's rules, through the Registry on a real etcd."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.cache.test_watch_cache import running
from tests.apiserver.registry.rules_player import Player
from tests.support.etcd import ThrowawayEtcd
from tests.support.recordings import read

CASES = read("apiserver_rules.jsonl")


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
async def test_the_rules_of_the_real_server_hold(etcd: ThrowawayEtcd, case: dict[str, Any]) -> None:
    async with running(etcd) as bench:
        assert not await Player(bench, case).play()
