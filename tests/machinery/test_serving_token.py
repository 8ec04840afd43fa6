"""The token of the serving ports: made once, the owner's alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from nominee.machinery.process.serving_port import serving_token
from nominee.machinery.process.serving_port.serving_client import ServingPort
from tests.support.patience import PATIENCE_SECONDS

PROCESSES = 4


def test_it_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    assert serving_token.read(tmp_path) == ""
    made = serving_token.ensure(tmp_path)
    assert len(made) >= 32
    assert serving_token.ensure(tmp_path) == made == serving_token.read(tmp_path)
    assert serving_token.path(tmp_path).stat().st_mode & 0o777 == 0o600
    assert serving_token.path(tmp_path).parent.stat().st_mode & 0o777 == 0o700
    assert [each.name for each in serving_token.path(tmp_path).parent.iterdir()] == ["serving.token"]


def test_processes_that_start_at_once_have_the_same(tmp_path: Path) -> None:
    script = (
        "import sys; from nominee.machinery.process import serving_token; print(end='.', flush=True);"
        "sys.stdin.readline();"
        "print(serving_token.ensure(sys.argv[1]))"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(PROCESSES)
    ]
    for each in started:
        assert each.stdout is not None
        assert each.stdout.read(1) == "."
    tokens = {each.communicate("\n", timeout=PATIENCE_SECONDS)[0] for each in started}
    assert tokens == {serving_token.read(tmp_path) + "\n"}


def test_a_port_does_not_print_its_token() -> None:
    assert "secret" not in repr(ServingPort("127.0.0.1:1", "secret"))
