"""Priority: sets a pod's priority and preemption policy from its PriorityClass (kube-apiserver 1.36)."""

from __future__ import annotations

from nominee.apiserver.admission.interface import AdmissionRequest, Lookup, Plugin
from nominee.machinery.api.kinds import POD, PRIORITY_CLASS
from nominee.machinery.api.pb import core, scheduling

_PREEMPT = "PreemptLowerPriority"
_COMPUTED = "must not be provided in pod spec; priority admission controller computed"


class Priority(Plugin):
    """Sets spec.priority and spec.preemptionPolicy, and refuses unknown classes and other priorities."""

    name = "Priority"
    requests = (
        (POD, "CREATE", ""),
        (POD, "UPDATE", ""),
        (PRIORITY_CLASS, "CREATE", ""),
        (PRIORITY_CLASS, "UPDATE", ""),
    )

    async def admit(self, request: AdmissionRequest, lookup: Lookup) -> None:
        if request.kind is not POD:
            return
        spec = request.obj.spec
        if request.operation == "UPDATE":
            _keep(spec, request.old.spec)
            return
        name = spec.priorityClassName
        found = await self._class(request, name, lookup) if name else await self._default(lookup)
        priority, policy = 0, _PREEMPT
        if found is not None:
            priority, policy = found.value, found.preemptionPolicy
            if not name:
                spec.priorityClassName = found.metadata.name
        if spec.HasField("priority") and spec.priority != priority:
            raise request.forbidden(
                f"the integer value of priority ({spec.priority}) {_COMPUTED} {priority}"
                " from the given PriorityClass name"
            )
        spec.priority = priority
        if not policy:
            return
        if spec.HasField("preemptionPolicy") and spec.preemptionPolicy != policy:
            raise request.forbidden(
                f"the string value of PreemptionPolicy ({spec.preemptionPolicy}) {_COMPUTED} {policy}"
                " from the given PriorityClass name"
            )
        spec.preemptionPolicy = policy

    async def _class(self, request: AdmissionRequest, name: str, lookup: Lookup) -> scheduling.PriorityClass:
        found = await lookup.find(PRIORITY_CLASS, "", name)
        if found is None:
            raise request.forbidden(f"no PriorityClass with name {name} was found")
        message: scheduling.PriorityClass = found.message
        return message

    async def _default(self, lookup: Lookup) -> scheduling.PriorityClass | None:
        """Return the global default class; the one with the lowest value when there are several."""
        defaults = [
            found.message for found in await lookup.known(PRIORITY_CLASS) if found.message.globalDefault
        ]
        return min(defaults, key=lambda found: int(found.value), default=None)

    async def validate(self, request: AdmissionRequest, lookup: Lookup) -> None:
        if request.kind is not PRIORITY_CLASS or not request.obj.globalDefault:
            return
        default = await self._default(lookup)
        if default is None:
            return
        same = request.operation == "UPDATE" and default.metadata.name == request.obj.metadata.name
        if not same:
            raise request.forbidden(
                f"PriorityClass {default.metadata.name} is already marked as default."
                " Only one default can exist"
            )


def _keep(new: core.PodSpec, old: core.PodSpec) -> None:
    """Keep the fields when a client does not send them: an old client must not clear them."""
    if not new.HasField("priority") and old.HasField("priority"):
        new.priority = old.priority
    if not new.HasField("preemptionPolicy") and old.HasField("preemptionPolicy"):
        new.preemptionPolicy = old.preemptionPolicy
