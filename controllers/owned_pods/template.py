"""A pod from an owner's template. Pure.

Source: kube-controller-manager 1.36, controller_utils (GetPodFromTemplate).
"""

from __future__ import annotations

from nominee.machinery.api.kinds import Object
from nominee.machinery.api.objects import owner_reference
from nominee.machinery.api.pb import core


def pod_of(owner: Object, template: core.PodTemplateSpec) -> core.Pod:
    """Return a new pod from the template, owned by `owner`; the API server completes its name."""
    pod = core.Pod()
    pod.metadata.namespace = owner.metadata.namespace
    pod.metadata.generateName = f"{owner.metadata.name}-"
    pod.metadata.labels.update(template.metadata.labels)
    pod.metadata.annotations.update(template.metadata.annotations)
    pod.metadata.finalizers.extend(template.metadata.finalizers)
    pod.metadata.ownerReferences.append(owner_reference(owner))
    pod.spec.CopyFrom(template.spec)
    return pod
