"""DefaultTolerationSeconds: pods tolerate an unready or unreachable node for 300 s (kube-apiserver 1.36)."""

from __future__ import annotations

from nominee.apiserver.admission.interface import AdmissionRequest, Lookup, Plugin
from nominee.machinery.api.kinds import POD
from nominee.machinery.api.pb import core

SECONDS = 300
_KEYS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_DEFAULTS = tuple(
    core.Toleration(key=key, operator="Exists", effect="NoExecute", tolerationSeconds=SECONDS)
    for key in _KEYS
)


class DefaultTolerationSeconds(Plugin):
    """Adds the tolerations for `not-ready` and `unreachable` that a pod lacks."""

    name = "DefaultTolerationSeconds"
    requests = ((POD, "CREATE", ""), (POD, "UPDATE", ""))

    async def admit(self, request: AdmissionRequest, lookup: Lookup) -> None:
        tolerations = request.obj.spec.tolerations
        missing = [
            default
            for default in _DEFAULTS
            if not any(
                found.key in (default.key, "") and found.effect in ("NoExecute", "") for found in tolerations
            )
        ]
        tolerations.extend(missing)
