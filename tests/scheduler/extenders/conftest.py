"""A real extender process, asked by a whole scheduler over an API server in memory."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.patience import PATIENCE_SECONDS

LIMIT_SECONDS = PATIENCE_SECONDS


class Outside:
    """Handle on the extender process."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def answers(self, **by_verb: Any) -> None:
        """`filter={"body": ...}`, with `status` and `hang_seconds` where wanted."""
        data = json.dumps(by_verb).encode()
        request = urllib.request.Request(f"{self.url}/script", data=data, method="PUT")
        urllib.request.urlopen(request, timeout=LIMIT_SECONDS).close()

    def calls(self, verb: str = "") -> list[Any]:
        """Bodies that came for a verb, or the verbs of all calls."""
        with urllib.request.urlopen(f"{self.url}/calls", timeout=LIMIT_SECONDS) as answer:
            found = json.load(answer)
        return [body for called, body in found if called == verb] if verb else [called for called, _ in found]


@pytest.fixture
def outside() -> Iterator[Outside]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.scheduler.extenders.server"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield Outside(int(process.stdout.readline()))
    finally:
        process.kill()
        process.communicate()
