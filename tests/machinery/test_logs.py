"""Logs: how a line reads."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.runtime import logs
from nominee.machinery.runtime.clock import FakeClock
from tests.support.patience import PATIENCE_SECONDS


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


def test_text_reads_like_klog() -> None:
    out = io.StringIO()
    logs.configure("scheduler", stream=out, clock=FakeClock(1_700_000_000.25))
    log = logs.get(step="bind")
    log.info("Bound", pod=ObjectKey("ns", "p"), note='two "words"', n=1)
    log.debug("unseen")
    want = 'I1114 22:13:20.250000 scheduler] Bound step=bind pod=ns/p note="two \\"words\\"" n=1\n'
    assert out.getvalue() == want


def test_json_has_the_same_fields() -> None:
    out = io.StringIO()
    logs.configure("scheduler", format="json", stream=out, clock=FakeClock(1_700_000_000.25))
    logs.get().warning("Late", pod=ObjectKey("ns", "p"), nodes={"b", "a"})
    line = json.loads(out.getvalue())
    assert line["timestamp"].startswith("2023-11-14T22:13:20.25")
    assert {key: line[key] for key in ("level", "component", "msg", "nodes")} == {
        "level": "warning",
        "component": "scheduler",
        "msg": "Late",
        "nodes": ["a", "b"],
    }


def test_an_exception_keeps_its_traceback_and_the_standard_library_is_heard() -> None:
    out = io.StringIO()
    logs.configure("x", level="debug", stream=out, clock=FakeClock())
    try:
        raise KeyError("k")
    except KeyError:
        logs.get().exception("Failed", step="a")
    logging.getLogger("grpc").error("oops %s", 1)
    text = out.getvalue()
    assert "x] Failed step=a\nTraceback" in text
    assert text.startswith("E1114")
    assert "x] oops 1 logger=grpc" in text


def test_before_it_is_configured_only_warnings_are_written_and_not_to_standard_output() -> None:
    script = (
        "from nominee.machinery.runtime import logs; logs.get().info('a'); logs.get().warning('b', node='n1')"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], check=True, timeout=PATIENCE_SECONDS, capture_output=True, text=True
    )
    assert ran.stdout == ""
    assert ran.stderr.startswith("W")
    assert ran.stderr.endswith(" nominee] b node=n1\n")


def test_lines_are_written_to_a_file_for_a_while(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = logs.get()
    for name in ("a", "b"):
        with logs.written_to(tmp_path / "logs" / name, "chaos"):
            log.info("In", file=name)
    log.info("unseen")
    log.warning("After")
    for name in ("a", "b"):
        text = (tmp_path / "logs" / name).read_text(encoding="utf-8")
        assert text.endswith(f" chaos] In file={name}\n")
        assert text.count("\n") == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.endswith(" nominee] After\n")
    assert "unseen" not in printed.err


def test_it_does_not_load_rich_and_does_not_forbid_it() -> None:
    script = (
        "import sys; import nominee.machinery.runtime.logs; assert 'rich' not in sys.modules; "
        "import rich.console"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=PATIENCE_SECONDS)
