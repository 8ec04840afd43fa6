"""A daemon set's pods for nodes. Pure.

Source: kube-controller-manager 1.36, pkg/controller/daemon/util (CreatePodTemplate).
"""

from __future__ import annotations

from typing import Final

from nominee.controllers.owned_pods.template import pod_of
from nominee.controllers.revisions.history import REVISION_LABEL
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import apps, core
from nominee.machinery.api.selectors import parse_int64
from nominee.machinery.scheduling.daemons import tolerations_of
from nominee.machinery.scheduling.node_affinity import NAME_FIELD

GENERATION: Final = "deprecated.daemonset.template.generation"
GENERATION_LABEL: Final = "pod-template-generation"


def template_of(daemon_set: apps.DaemonSet, digest: str) -> core.PodTemplateSpec:
    """Return the template of the pods of a revision, with its labels and tolerations."""
    template = copy_of(daemon_set.spec.template)
    generation = parse_int64(daemon_set.metadata.annotations.get(GENERATION, ""))
    if generation is not None:
        template.metadata.labels[GENERATION_LABEL] = str(generation)
    template.metadata.labels[REVISION_LABEL] = digest
    tolerations = tolerations_of(template.spec)
    del template.spec.tolerations[:]
    template.spec.tolerations.extend(tolerations)
    return template


def pod_for(daemon_set: apps.DaemonSet, template: core.PodTemplateSpec, node: str) -> core.Pod:
    """Return a new pod for one node: the scheduler binds it there, as its node affinity asks."""
    pod = pod_of(daemon_set, template)
    required = pod.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution
    del required.nodeSelectorTerms[:]
    required.nodeSelectorTerms.add().matchFields.add(key=NAME_FIELD, operator="In", values=[node])
    return pod
