"""Where a volume's data lies."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.rest.asgi import in_memory

_PATH = "/api/v1/persistentvolumes"


@pytest.mark.parametrize(
    ("source", "paths"),
    [
        ({"nfs": {"server": "s", "path": "/d"}}, []),
        ({"nfs": {"server": "", "path": "d"}}, ["spec.nfs.server", "spec.nfs.path"]),
        ({"rbd": {"monitors": [], "image": "i"}}, ["spec.rbd.monitors"]),
        ({"azureFile": {"secretName": "", "shareName": "s"}}, ["spec.azureFile.secretName"]),
        ({"csi": {"driver": "d.example.com", "volumeHandle": "v"}}, []),
        ({"csi": {"driver": "", "volumeHandle": ""}},
         ["spec.csi.driver", "spec.csi.driver", "spec.csi.volumeHandle"]),
        ({"csi": {"driver": "a/b", "volumeHandle": "v"}}, ["spec.csi.driver"]),
        ({"csi": {"driver": "d", "volumeHandle": "v", "nodePublishSecretRef": {"name": "n"}}},
         ["spec.csi.nodePublishSecretRef.namespace"]),
        ({"local": {"path": "/a/../b"}}, ["spec.local.path", "spec.nodeAffinity"]),
    ],
)  # fmt: skip
async def test_what_a_source_needs(source: Any, paths: list[str]) -> None:
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], **source}
    reply = await (await in_memory()).json("POST", _PATH, {"metadata": {"name": "v"}, "spec": spec})
    if paths:
        assert [cause["field"] for cause in reply.document["details"]["causes"]] == paths
    else:
        assert reply.code == 201, reply.body
