"""The patch of a pod's status: strategic merge, of its changes, as a real kubelet sends it. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from nominee.machinery.api.pb import core
from nominee.machinery.patch.strategic_diff import diff_strategic
from nominee.machinery.wire.codec import to_json


def status_patch(base: core.Pod, status: core.PodStatus) -> Mapping[str, object] | None:
    """Return the patch from the status of `base`, with the uid it is meant for; None when nothing changes."""
    change = diff_strategic("k8s.io.api.core.v1.PodStatus", to_json(base.status), to_json(status))
    if not change:
        return None
    return {"metadata": {"uid": base.metadata.uid}, "status": change}
