"""The ordinals, names, labels and claims of a stateful set's pods. Pure.

Source: kube-controller-manager 1.36, pkg/controller/statefulset (stateful_set_utils).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from nominee.controllers.owned_pods.template import pod_of
from nominee.controllers.revisions import history
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import apps, core

POD_NAME_LABEL: Final = "statefulset.kubernetes.io/pod-name"
POD_INDEX_LABEL: Final = "apps.kubernetes.io/pod-index"
_NAME: Final = re.compile(r"(.*)-([0-9]{1,10})", re.DOTALL)


def parent_and_ordinal(pod_name: str) -> tuple[str, int]:
    """Return the name of the set that a pod's name is made of, and the ordinal: `web`, 2 of `web-2`.

    A name that no set makes gives "" and -1.
    """
    match = _NAME.fullmatch(pod_name)
    if match is None or str(int(match[2])) != match[2]:
        return "", -1
    return match[1], int(match[2])


def is_member(of: apps.StatefulSet, pod: core.Pod) -> bool:
    return parent_and_ordinal(pod.metadata.name)[0] == of.metadata.name


def ordinal_of(pod: core.Pod) -> int:
    return parent_and_ordinal(pod.metadata.name)[1]


def ordinals(of: apps.StatefulSet) -> range:
    """Return the ordinals that the set shall have."""
    start = of.spec.ordinals.start
    return range(start, start + of.spec.replicas)


def revision_of(pod: core.Pod) -> str:
    return pod.metadata.labels.get(history.REVISION_LABEL, "")


def claims_of(of: apps.StatefulSet, pod_name: str) -> Iterator[tuple[str, str]]:
    """Yield the names of a pod's claim templates and claims: `data`, `data-web-2`."""
    for template in of.spec.volumeClaimTemplates:
        yield template.metadata.name, f"{template.metadata.name}-{pod_name}"


def new_claim(of: apps.StatefulSet, template_name: str, name: str) -> core.PersistentVolumeClaim:
    """Return a claim of a template, with the labels of the set's selector."""
    (template,) = (each for each in of.spec.volumeClaimTemplates if each.metadata.name == template_name)
    claim = copy_of(template)
    claim.metadata.name, claim.metadata.namespace = name, of.metadata.namespace
    claim.metadata.labels.update(of.spec.selector.matchLabels)
    return claim


def set_identity(pod: core.Pod) -> None:
    """Label a pod with its name and its ordinal."""
    pod.metadata.labels[POD_NAME_LABEL] = pod.metadata.name
    pod.metadata.labels[POD_INDEX_LABEL] = str(ordinal_of(pod))


def set_storage(of: apps.StatefulSet, pod: core.Pod) -> None:
    """Mount the pod's claims; they replace volumes of the same names."""
    volumes = [
        core.Volume(
            name=name,
            volumeSource=core.VolumeSource(
                persistentVolumeClaim=core.PersistentVolumeClaimVolumeSource(claimName=claim)
            ),
        )
        for name, claim in claims_of(of, pod.metadata.name)
    ]
    names = {volume.name for volume in volumes}
    volumes += [volume for volume in pod.spec.volumes if volume.name not in names]
    del pod.spec.volumes[:]
    pod.spec.volumes.extend(volumes)


def new_pod(of: apps.StatefulSet, ordinal: int, revision: apps.ControllerRevision) -> core.Pod:
    """Return the pod of an ordinal, from the revision's template."""
    pod = pod_of(of, history.template_of(revision))
    pod.metadata.name = f"{of.metadata.name}-{ordinal}"
    set_identity(pod)
    pod.metadata.labels[history.REVISION_LABEL] = revision.metadata.name
    pod.spec.hostname, pod.spec.subdomain = pod.metadata.name, of.spec.serviceName
    set_storage(of, pod)
    return pod


def is_consistent(of: apps.StatefulSet, pod: core.Pod) -> bool:
    """Report whether a pod has its label and mounts its claims."""
    mounted = {
        volume.name: volume.volumeSource.persistentVolumeClaim.claimName for volume in pod.spec.volumes
    }
    return pod.metadata.labels.get(POD_NAME_LABEL) == pod.metadata.name and all(
        mounted.get(name) == claim for name, claim in claims_of(of, pod.metadata.name)
    )


def correction(of: apps.StatefulSet, pod: core.Pod) -> core.Pod:
    """Return the pod with its labels and claims."""
    new = copy_of(pod)
    if new.metadata.labels.get(POD_NAME_LABEL) != new.metadata.name:
        set_identity(new)
    if not is_consistent(of, new):
        set_storage(of, new)
    return new
