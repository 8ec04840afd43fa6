"""`restart --emulated-version` names the components that are then outside Kubernetes' version skew policy."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.nominee.test_cli import nominee

VERSIONS = {"scheduler-0": "1.36", "scheduler-1": "1.36", "controllers": "1.37", "kubelet-0": "1.34"}


@pytest.mark.parametrize(
    ("component", "version", "servers", "warnings"),
    [
        ("apiserver", "1.37", {"apiserver": "1.37"}, []),
        (
            "apiserver", "1.36", {"apiserver": "1.37"},
            ["controllers 1.37 is newer than the API server 1.36"],
        ),
        (
            "apiserver-0", "1.35", {"apiserver-0": "1.37", "apiserver-1": "1.37"},
            [
                "scheduler 1.36 is newer than the API server 1.35",
                "controllers 1.37 is newer than the API server 1.35",
                "API servers 1.35 and 1.37 are more than one minor version apart",
            ],
        ),
        (
            "scheduler", "1.35", {"apiserver": "1.37"},
            ["scheduler 1.35 is more than one minor version older than the API server 1.37"],
        ),
        ("kubelet", "1.33", {"apiserver": "1.37"},
         ["kubelet 1.33 is more than 3 minor versions older than the API server 1.37"]),
        ("kubelet-0", "1.35", {"apiserver": "1.37"}, []),
    ],
)  # fmt: skip
def test_a_restart_warns(
    component: str, version: str, servers: dict[str, str], warnings: list[str], tmp_path: Path
) -> None:
    (tmp_path / "run").mkdir()
    for name, own in {**VERSIONS, **servers}.items():
        document = {"name": name, "component": name.partition("-")[0], "emulatedVersion": own}
        (tmp_path / "run" / f"{name}.json").write_text(json.dumps({**document, "pid": os.getpid()}))
    answer = nominee("restart", component, "--emulated-version", version, directory=tmp_path)
    assert answer.returncode == 1  # no supervisor runs here
    shown = [line for line in answer.stderr.splitlines() if line.startswith("warning: ")]
    assert sorted(shown) == sorted(
        f"warning: {text}: upstream does not support this pair" for text in warnings
    )
