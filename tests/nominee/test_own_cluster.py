"""The cluster of a command: what is shown if it does not start."""

from __future__ import annotations

from pathlib import Path

import pytest

from nominee.own_cluster import ClusterStartError, cluster


def test_the_error_has_the_end_of_what_was_reported(tmp_path: Path) -> None:
    def start() -> None:
        with cluster(tmp_path / "d", ["--replicas", "controllers=2"]):
            raise AssertionError("it must not start")

    with pytest.raises(ClusterStartError, match="controllers=2: at most 1") as first:
        start()
    with pytest.raises(ClusterStartError) as second:
        start()
    assert str(second.value) == str(first.value)  # the log of the first start is not repeated
    assert "controllers=2" in (tmp_path / "d" / "logs" / "up.log").read_text(encoding="utf-8")
