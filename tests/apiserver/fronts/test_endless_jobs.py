"""Creating a Job whose emulated pods would never end answers with a warning that names the annotation."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.machinery.api.kinds import CRON_JOB, JOB, POD, Kind
from tests.apiserver.fronts.adapter import Api, Document
from tests.apiserver.fronts.documents import made

RULES = "index=0 exit-code=1"


def _warning(kind: str) -> str:
    text = f"nominee: no pod of this {kind} ends by itself: "
    return f"{text}set the annotation nominee.dev/run-duration of its pod template (docs/configuration.md)"


def _document(kind: Kind[Any], annotations: dict[str, str], **metadata: Any) -> Document:
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    spec: Document = {"template": {"metadata": {"annotations": annotations}, "spec": pod}}
    if kind is CRON_JOB:
        spec = {"schedule": "@daily", "jobTemplate": {"spec": spec}}
    return {"metadata": {"name": "x", **metadata}, "spec": spec}


@pytest.mark.parametrize(
    ("annotations", "warns"),
    [
        ({}, True),
        ({"nominee.dev/rules": RULES}, True),
        ({"nominee.dev/rules": f"{RULES} run-duration=1s"}, False),
        ({"nominee.dev/run-duration": "1s"}, False),
    ],
)
@pytest.mark.parametrize("kind", [JOB, CRON_JOB], ids=lambda kind: kind.plural)
def test_the_creation_warns(
    api: Api, space: str, kind: Kind[Any], annotations: dict[str, str], warns: bool
) -> None:
    created = api.create(kind, _document(kind, annotations), space)
    made(created)
    assert created.warnings == ((_warning(kind.kind),) if warns else ())
    changed = {**created.document, "metadata": {**created.metadata, "labels": {"a": "b"}}}
    assert api.update(kind, changed, space).warnings == ()


def test_the_job_of_a_cron_job_does_not_warn_again(api: Api, space: str) -> None:
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "c", "uid": "u", "controller": True}
    assert api.create(JOB, _document(JOB, {}, ownerReferences=[owner]), space).warnings == ()


def test_a_pod_may_run_for_ever(api: Api, space: str) -> None:
    pod = _document(JOB, {})["spec"]["template"]
    assert api.create(POD, {**pod, "metadata": {"name": "x"}}, space).warnings == ()
