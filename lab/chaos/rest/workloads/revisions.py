"""The revisions of the templates of stateful sets and daemon sets. No I/O."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from nominee.lab.chaos.rest.state import Finding, State, name_of
from nominee.lab.chaos.rest.workloads.owners import CONTROLLERS, age_of
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import is_controlled_by, is_terminating
from nominee.machinery.api.pb import apps, core
from nominee.machinery.wire.codec import from_json, to_json

REVISION: Final = "controller-revision-hash"
"""The label of pods: the name of a StatefulSet's revision, or the hash of a DaemonSet's."""


def latest_revisions(state: State) -> Iterator[Finding]:
    """Find owners whose latest revision is not that of their template; after a roll-back it is, too.

    A quota may refuse a revision, and a namespace that ends does. No event of a revision that another client
    removes makes a controller look at it (kube-controller-manager 1.36, history/controller_history.go).
    """
    if CONTROLLERS not in state.running:
        return
    owners: list[apps.StatefulSet | apps.DaemonSet] = [*state.of(kinds.STATEFUL_SET)]
    for each in [*owners, *state.of(kinds.DAEMON_SET)]:
        namespace = each.metadata.namespace
        if namespace in state.ending_namespaces or namespace in state.namespaces_with_quotas:
            continue
        latest = latest_revision(state, each)
        if latest is not None and not is_terminating(each) and not _restores(latest, each.spec.template):
            name = latest.metadata.name
            yield Finding(name_of(each), f"has another template than its latest revision, {name}")


def latest_revision(state: State, owner: apps.StatefulSet | apps.DaemonSet) -> apps.ControllerRevision | None:
    """Return the revision of an owner with the greatest number, the youngest of several."""
    own = (each for each in state.of(kinds.CONTROLLER_REVISION) if is_controlled_by(each, owner))
    return max(own, key=lambda each: (each.revision, age_of(each)), default=None)


def _restores(revision: apps.ControllerRevision, template: core.PodTemplateSpec) -> bool:
    """Return whether a revision has this template; an earlier release may have written other empty fields."""
    data = json.loads(revision.data.raw)["spec"]["template"]
    data.pop("$patch", None)
    return to_json(from_json(core.PodTemplateSpec, data)) == to_json(template)
