"""The files of the page: pinned libraries, no script in the HTML, and the tests of the modules."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from nominee.lab.timeline.page import BUNDLE
from tests.support.patience import PATIENCE_SECONDS

TESTS = Path(__file__).with_name("page")


def test_the_libraries_are_the_pinned_files() -> None:
    rows = re.findall(r"\| `([\w.]+)` \|.*\| `(\w{64})` \|", (BUNDLE / "vendor/README.md").read_text())
    found = {name: hashlib.sha256((BUNDLE / "vendor" / name).read_bytes()).hexdigest() for name, _ in rows}
    assert found == dict(rows)
    named = {each.name for each in BUNDLE.glob("vendor/*") if each.suffix in (".js", ".css")}
    assert set(found) == named


def test_scripts_and_styles_are_files() -> None:
    """The policy of the server allows no others."""
    for file in BUNDLE.glob("*.html"):
        text = file.read_text()
        assert not re.search(r"\bon\w+=|\bstyle=|<style|javascript:|https?:", text)
        assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", text))
    own = "".join(file.read_text() for file in BUNDLE.glob("*.js"))
    assert not re.search(r"\beval\(|new Function|innerHTML|dangerouslySetInnerHTML|https?:", own)


def test_the_modules_pass_their_tests() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node, which runs the tests of the page's modules")
    result = subprocess.run(
        [node, "--test", str(TESTS)], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    assert result.returncode == 0, result.stdout
    assert "# pass 0" not in result.stdout
