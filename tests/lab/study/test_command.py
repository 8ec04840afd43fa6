"""`nominee study resize-preemption` on real processes, as short as it gets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nominee.lab.study.pages.report import API_VERSION
from tests.nominee.test_cli import nominee


@pytest.mark.slow
def test_four_pods_lose_three_with_the_schedulers_fit_and_one_with_the_kubelets(tmp_path: Path) -> None:
    """KEP-5836, "Risk of Additional Preemption"; then the page is made from the results."""
    answer = nominee(
        *("study", "resize-preemption", "--quick", "--seeds", "2", "--option", "none"),
        *("--scenario", "four-pods", "-o", "json"),
    )
    assert answer.returncode == 0, answer.stderr
    document = json.loads(answer.stdout)
    assert document["apiVersion"] == API_VERSION
    evicted = {one["fit"]: one["evicted"] for one in document["trials"]}
    assert (evicted["scheduler"]["min"], evicted["scheduler"]["max"]) == (3, 3)
    assert (evicted["kubelet"]["min"], evicted["kubelet"]["max"]) == (1, 1)
    results, html = tmp_path / "results.json", tmp_path / "page.html"
    results.write_text(answer.stdout)
    answer = nominee("study", "resize-preemption", "--input", results, "--html", html)
    assert answer.returncode == 0, answer.stderr
    assert "<svg" in html.read_text()


def test_results_and_measurements_are_not_mixed(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    results.write_text("{}")
    answer = nominee("study", "resize-preemption", "--input", results, "--seeds", "3")
    assert answer.returncode == 2
    assert "--input has the results" in answer.stderr
    answer = nominee("study", "resize-preemption", "--input", results)
    assert answer.returncode == 2
    assert "not a ResizePreemptionStudy" in answer.stderr
