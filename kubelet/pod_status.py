"""A pod's status as this kubelet writes it."""

from __future__ import annotations

from kubelet.pod_resources import PodResources
from machinery.pb import core


def write_resources(pod: core.Pod, allocated: PodResources, actuated: PodResources) -> None:
    """Sets `allocatedResources` and `resources` in the container statuses (and the pod's, at pod level).

    KEP-1287, "API Changes". A missing container status is added.
    """
    status = pod.status
    for spec_rows, rows in (
        (pod.spec.initContainers, status.initContainerStatuses),
        (pod.spec.containers, status.containerStatuses),
    ):
        by_name = {row.name: row for row in rows}
        for container in spec_rows:
            if allocated.get(container.name) is None:
                continue
            row = by_name.get(container.name)
            if row is None:
                row = rows.add()
                row.name = container.name
            row.ClearField("allocatedResources")
            row.ClearField("resources")
            allocated.of(container.name).requests.write(row.allocatedResources)
            actuated.of(container.name).write(row.resources)
            row.resources.SetInParent()
    status.ClearField("allocatedResources")
    status.ClearField("resources")
    if allocated.pod is not None:
        allocated.pod.requests.write(status.allocatedResources)
        (actuated.pod or allocated.pod).write(status.resources)
        status.resources.SetInParent()
