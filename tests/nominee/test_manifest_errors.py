"""A mistake in a manifest is reported with the file, the line, the object and the field."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import pytest
from click.testing import CliRunner

from nominee.command_group import nominee
from tests.support.cluster import Cluster

_POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: web
  labels: {app: web, app.kubernetes.io/name: web}
spec:
  containers:
  - {name: c, image: i}
"""
_LABEL = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: other
  namespace: team
  labels:
    app: web
    version: 1
"""


@pytest.mark.parametrize("verb", ["apply", "create"])
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(
            _POD.replace("name: web}", "name: 1}"),
            ":5: Pod web: metadata.labels.app.kubernetes.io/name: expected a string, got number",
            id="label",
        ),
        pytest.param(
            f"{_POD}---\n{_LABEL}".replace("ConfigMap", "Pod"),
            ":17: Pod team/other: metadata.labels.version: expected a string, got number",
            id="second document",
        ),
        pytest.param(
            _POD.replace("labels: {app: web", "annotations: {app: true"),
            ":5: Pod web: metadata.annotations.app: expected a string, got bool",
            id="annotation",
        ),
        pytest.param(
            "kind: List\napiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Node\n"
            "  metadata: {name: n}\n  spec:\n    unschedulable: 1\n",
            ":8: Node n: spec.unschedulable: expected true or false, got number",
            id="item of a List",
        ),
        pytest.param(
            _POD.replace("image: i", "image: [i]"),
            ":8: Pod web: spec.containers[0].image: expected a string, got array",
            id="container",
        ),
        pytest.param(
            _POD.replace("  containers:\n", "  container:\n"),
            ":7: Pod web: spec.container: unknown field",
            id="unknown field",
        ),
        pytest.param(
            f"---\n{_POD}".replace("kind: Pod", "kind: Pud"),
            ':2: Pud web: no matches for kind "Pud" in version "v1"',
            id="unknown kind",
        ),
        pytest.param(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\n"
            "metadata: {name: web}\n",
            ":1: ValidatingAdmissionPolicy web: ValidatingAdmissionPolicy cannot be written: "
            "Nominee has no admission webhooks or policies",
            id="admission policy",
        ),
        pytest.param(f"{_POD}---\ntext\n", ":10: expected an object, got string", id="no object"),
        pytest.param(
            _POD.replace("  name: web\n  labels: {app: web", "  generateName: web-\n  labels: {1: web"),
            ":5: Pod web-: metadata.labels: expected string keys, got number",
            id="key",
        ),
    ],
)
def test_file_line_object_and_field_are_named(verb: str, text: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(text, encoding="utf-8")
    answer = CliRunner().invoke(nominee, [verb, "-f", str(file), "--dir", str(tmp_path)])
    assert (answer.exit_code, answer.stderr) == (1, f"Error: {file}{problem}\n")


async def test_what_the_server_refuses_is_named_too(cluster: Cluster, tmp_path: Path) -> None:
    await cluster.start("etcd", "apiserver")
    file = tmp_path / "pods.yaml"
    other = _LABEL.replace("version: 1", "version: v")
    wrong = _POD.replace("name: c,", "name: C,").replace("name: web\n", "name: wrong\n")
    file.write_text(f"{_POD}---\n{other}---\n{wrong}")
    for verb in ("create", "apply"):
        words = [verb, "-f", str(file), "--dir", str(cluster.directory)]
        result = await anyio.run_process([sys.executable, "-m", "nominee.cli", *words], check=False)
        stderr = result.stderr.decode()
        assert result.returncode == 1
        assert result.stdout.decode() == f"pod/web {'created' if verb == 'create' else 'unchanged'}\n"
        refusal = f'{file}:10: ConfigMap team/other: namespaces "team" not found'
        assert f"Error from server (NotFound): {refusal}" in stderr
        assert f"{file}:26: Pod wrong: " in stderr
