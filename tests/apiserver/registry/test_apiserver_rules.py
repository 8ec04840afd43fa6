"""Every golden case of the pod registry's rules, through the Registry on a real etcd."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.apiserver.cache.test_watch_cache import running
from tests.apiserver.registry.rules_player import Player
from tests.support.etcd import ThrowawayEtcd
from tests.support.recordings import read

CASES = read("apiserver_rules.jsonl")


def family(case: dict[str, Any]) -> str:
    return str(case["id"]).partition("-")[0]


async def test_the_rules_of_the_real_server_hold(
    etcd: ThrowawayEtcd, capsys: pytest.CaptureFixture[str]
) -> None:
    passed: Counter[str] = Counter()
    failed: dict[str, list[str]] = {}
    async with running(etcd) as bench:
        for case in CASES:
            differences = await Player(bench, case).play()
            if differences:
                failed[case["id"]] = differences
            else:
                passed[family(case)] += 1
    failures = Counter(name.partition("-")[0] for name in failed)
    with capsys.disabled():
        for name in sorted({*passed, *failures}):
            print(f"\napiserver_rules {name}: {passed[name]} passed, {failures[name]} failed", end="")
    assert sum(passed.values()) + len(failed) == len(CASES) > 0
    assert not failed, "\n".join(f"{name}: {'; '.join(found)}" for name, found in failed.items())
