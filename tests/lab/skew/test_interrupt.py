"""Ctrl-C during `nominee skew run` keeps the cells that have ended, and --resume runs the others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.skew.fake_cell import FOLDER, started
from tests.lab.skew.matrices import CLEARING, HEADER
from tests.support.eventually import eventually_sync
from tests.support.patience import PATIENCE_SECONDS

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
def test_ctrl_c_and_resume(tmp_path: Path) -> None:
    matrix, report = tmp_path / "matrix.yaml", tmp_path / "report"
    matrix.write_text(HEADER + CLEARING, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'build/pb'}", FOLDER: str(tmp_path)}
    words = ["skew", "run", str(matrix), "--full", "--report", str(report)]
    command = [sys.executable, "-P", "-m", "tests.lab.skew.fake_command", *words]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        first = eventually_sync(lambda: started(tmp_path), lambda found: len(found) == 2)
        for name, _ in first:
            (tmp_path / f"released-{name}").touch()
        eventually_sync(lambda: started(tmp_path), lambda found: len(found) == 4)
        process.send_signal(signal.SIGINT)
        _, printed = process.communicate(timeout=PATIENCE_SECONDS)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "--resume runs the other cells" in printed
    document = json.loads((report / "skew.json").read_text(encoding="utf-8"))
    assert {cell["id"] for cell in document["cells"]} == {name for name, _ in first}
    assert len(document["unfinished"]) == 8
    (tmp_path / "released").touch()
    again = subprocess.run(
        [*command, "--resume"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert again.returncode == 0, again.stderr
    assert again.stderr.count("✓") == 8
    assert len(json.loads((report / "skew.json").read_text(encoding="utf-8"))["cells"]) == 10
