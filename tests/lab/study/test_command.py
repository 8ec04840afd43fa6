"""`nominee study resize-preemption`, as short as it gets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nominee.lab.study.results import API_VERSION
from tests.nominee.test_cli import nominee


@pytest.mark.slow
def test_simulated_trials_become_a_page(tmp_path: Path) -> None:
    """KEP-5836, "Risk of Additional Preemption": three pods go, or one; then the page is made."""
    answer = nominee(
        *("study", "resize-preemption", "--quick", "--seeds", "2", "--option", "none"),
        *("--scenario", "four-pods", "--scenario", "policy-lag", "-o", "json"),
    )
    assert answer.returncode == 0, answer.stderr
    document = json.loads(answer.stdout)
    assert document["apiVersion"] == API_VERSION
    groups = {(one["scenario"], one["fit"], one["variant"]): one for one in document["runs"][0]["groups"]}
    assert groups["four-pods", "scheduler", ""]["columns"]["evicted"] == [3, 3]
    assert groups["four-pods", "kubelet", ""]["columns"]["evicted"] == [1, 1]
    assert groups["policy-lag", "scheduler", "kubelet 1.34, live read"]["columns"]["evicted"] == [0, 0]
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
