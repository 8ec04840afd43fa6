"""The container runtime of one node: the pods that it has, and the calls that change them. Pure.

It is what a kubelet process leaves behind when it dies, so its owner keeps `sandboxes` on disk.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from nominee.kubelet import addresses, instructions
from nominee.kubelet.instructions import Actuate, RuntimeCall
from nominee.kubelet.resize.actuation import Call, RestartContainers, SetPodResources, after_update
from nominee.kubelet.runtime import sandbox as change
from nominee.kubelet.runtime.sandbox import PodSandbox
from nominee.machinery.api.pb import core


@dataclass(slots=True)
class EmulatedRuntime:
    """The pods that run on a node. `node_number` gives them their addresses, `host_ip` is the node's."""

    node_number: int = 0
    host_ip: str = ""
    sandboxes: dict[str, PodSandbox] = field(default_factory=dict)
    """By the pod's uid."""

    def perform(self, call: RuntimeCall, now: float) -> PodSandbox:
        """Make a call and return the pod after it; `now` in seconds since the epoch.

        Raises:
            KeyError: the pod has no sandbox, and the call does not create one.
        """
        after = self._after(call, now)
        self.sandboxes[call.uid] = after
        return after

    def remove(self, uid: str) -> bool:
        """Kill and remove all of a pod; return whether there was anything."""
        return self.sandboxes.pop(uid, None) is not None

    def remove_orphans(self, uids: Iterable[str]) -> bool:
        """Remove all pods but these; return whether there was one."""
        known = set(uids)
        orphans = [uid for uid in self.sandboxes if uid not in known]
        for uid in orphans:
            del self.sandboxes[uid]
        return bool(orphans)

    def _after(self, call: RuntimeCall, now: float) -> PodSandbox:
        if isinstance(call, instructions.CreateSandbox):
            return change.prepare(call.pod, ip=self._address(call.pod), now=now)
        sandbox = self.sandboxes[call.uid]
        match call:
            case instructions.StartContainers(_, pod, resources):
                images = {one.name: one.image for one in (*pod.spec.initContainers, *pod.spec.containers)}
                ip = sandbox.ip or self._address(pod)
                return change.start(sandbox, resources, ip=ip, now=now, images=images)
            case instructions.ChangeImages(_, images, resources):
                return change.change_images(sandbox, images, resources, now=now)
            case instructions.StartCrashedContainers(_, names, resources):
                return change.rerun(sandbox, names, resources, now=now)
            case instructions.StartEphemeralContainers(_, names):
                return change.debug(sandbox, names, now=now)
            case instructions.ProbeContainers(_, ready, starting):
                return change.become_ready(sandbox, ready, starting)
            case instructions.CrashContainers(_, exit_code, names):
                return change.crash(sandbox, now=now, exit_code=exit_code, names=names)
            case instructions.KillContainers(_, names, exit_code, again):
                if again:
                    return change.crash(sandbox, now=now, exit_code=exit_code, names=names, killed=True)
                return change.stop(sandbox, now=now, exit_code=exit_code, names=names)
            case instructions.ExitContainers(_, exit_code) | instructions.StopContainers(_, exit_code):
                return change.stop(sandbox, now=now, exit_code=exit_code)
            case instructions.SignalContainers():
                return sandbox  # they take their time, which the kubelet measures
            case Actuate():
                return _actuate(sandbox, call, now)

    def _address(self, pod: core.Pod) -> str:
        """Return the node's address for a pod of the host network, else one that no pod of the node has.

        The last one when all are taken.
        """
        if pod.spec.hostNetwork:
            return self.host_ip
        taken = {sandbox.ip for sandbox in self.sandboxes.values()}
        free = (addresses.pod_ip(self.node_number, number) for number in addresses.POD_NUMBERS)
        last = addresses.pod_ip(self.node_number, addresses.POD_NUMBERS[-1])
        return next((address for address in free if address not in taken), last)


def _actuate(sandbox: PodSandbox, actuate: Actuate, now: float) -> PodSandbox:
    match actuate.call:
        case SetPodResources(resources):
            return change.with_pod_resources(sandbox, resources)
        case RestartContainers(names, resources, ready):
            return change.restart(sandbox, names, resources, now=now, ready=ready)
        case Call(call="container", container=name, resource=resource, allocated=allocated) if allocated:
            container = sandbox.get(name)
            if container is None:
                return sandbox
            inherited = container.inherited.with_quantity(resource, actuate.call.inherited.get(resource))
            sandbox = change.with_inherited(sandbox, {name: inherited})
            return change.with_resources(
                sandbox, {name: after_update(container.resources, resource, allocated)}
            )
        case _:
            return sandbox  # cgroups of the pod and its sandbox have no values here
