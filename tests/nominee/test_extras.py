"""The hint of a command whose optional dependency is not installed."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import metadata
from pathlib import Path

import pytest

from nominee.lab.extras import installation
from tests.support.patience import PATIENCE_SECONDS

_URL = "git+https://github.com/nominee-dev/nominee"
# A program in which the module is not installed.
_WITHOUT = "import sys; sys.modules[{module!r}] = None; from nominee.cli import main; main()"


@pytest.mark.parametrize("extra", ["study", "dask"])
def test_the_extra_exists(extra: str) -> None:
    assert extra in metadata("nominee").get_all("Provides-Extra", [])
    assert installation(extra) == f"pip install 'nominee[{extra}] @ {_URL}'"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "words", "extra"),
    [
        ("pygal", ("study", "resize-preemption", "--html", "page.html"), "study"),
        (
            "distributed",
            ("skew", "run", "skew.yaml", "--executor", "dask=x:1"),
            "dask",
        ),
        ("lightkube", ("import", "--kubeconfig", "skew.yaml"), "import"),
    ],
)
def test_the_hint_is_a_command_that_works(
    module: str, words: tuple[str, ...], extra: str, tmp_path: Path
) -> None:
    skew = Path(__file__).resolve().parents[2] / "skew.yaml"
    arguments = [str(skew) if word == "skew.yaml" else word for word in words]
    answer = subprocess.run(
        [sys.executable, "-c", _WITHOUT.format(module=module), *arguments],
        cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False,
    )  # fmt: skip
    assert answer.returncode != 0
    assert f"pip install 'nominee[{extra}] @ {_URL}'" in answer.stderr
