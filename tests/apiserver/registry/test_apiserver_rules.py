"""Every golden case of the pod registry's rules, through the Registry on a real etcd."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver.cache.test_watch_cache import running
from tests.apiserver.registry.rules_player import Player
from tests.support.etcd import ThrowawayEtcd

GOLDEN = Path(os.environ.get("NOMINEE_GOLDEN") or Path(__file__).parents[2] / "golden")


def cases() -> list[dict[str, Any]]:
    """All cases of all files of that name below the golden folder."""
    found = sorted(GOLDEN.rglob("apiserver_rules*.jsonl"))
    return [
        json.loads(line) for path in found for line in path.read_text(encoding="utf-8").splitlines() if line
    ]


def family(case: dict[str, Any]) -> str:
    return str(case["id"]).partition("-")[0]


async def test_the_rules_of_the_real_server_hold(
    etcd: ThrowawayEtcd, capsys: pytest.CaptureFixture[str]
) -> None:
    passed: Counter[str] = Counter()
    failed: dict[str, list[str]] = {}
    async with running(etcd) as bench:
        for case in cases():
            differences = await Player(bench, case).play()
            if differences:
                failed[case["id"]] = differences
            else:
                passed[family(case)] += 1
    failures = Counter(name.partition("-")[0] for name in failed)
    with capsys.disabled():
        for name in sorted({*passed, *failures}):
            print(f"\napiserver_rules {name}: {passed[name]} passed, {failures[name]} failed", end="")
    assert sum(passed.values()) + len(failed) >= 30
    assert not failed, "\n".join(f"{name}: {'; '.join(found)}" for name, found in failed.items())
