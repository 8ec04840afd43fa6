"""The horizontal pod autoscaler's shell."""

from __future__ import annotations

from collections.abc import Sequence

from nominee.controllers.horizontal_pod_autoscalers.autoscaling import (
    Rescale,
    Sync,
    Usages,
    decide,
    reads_metrics,
    target_kind,
)
from nominee.controllers.horizontal_pod_autoscalers.normalization import History
from nominee.controllers.horizontal_pod_autoscalers.replica_calculator import Settings
from nominee.controllers.planned_events import PlannedEvent
from nominee.controllers.shell import metrics
from nominee.controllers.shell.controller import Context, Controller
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.api.pb import autoscaling, autoscaling_v1, core
from nominee.machinery.api.selectors import LabelSelector
from nominee.machinery.defaults.watched import AUTOSCALER_TOLERANCE_SINCE
from nominee.machinery.runtime import failpoints
from nominee.machinery.runtime.clock import Moment
from nominee.machinery.wire import pod_metrics
from nominee.machinery.wire.codec import to_json

RESCALE_BEFORE = failpoints.declare(
    "controllers.horizontal_pod_autoscaler.rescale.before", "an autoscaler's target needs other replicas"
)
RESCALE_AFTER = failpoints.declare(
    "controllers.horizontal_pod_autoscaler.rescale.after", "the target is scaled; the status does not say so"
)


class HorizontalPodAutoscalerController(Controller):
    """Scales the target of each autoscaler by the usage of its pods, once in each period."""

    name = "horizontal-pod-autoscaler-controller"
    component = "horizontal-pod-autoscaler"

    def __init__(self, context: Context, settings: Settings, period_seconds: float) -> None:
        super().__init__(context)
        self._settings = settings
        self._period = period_seconds
        self._tolerance = context.gates.version >= AUTOSCALER_TOLERANCE_SINCE
        self._histories: dict[ObjectKey, History] = {}
        self._selectors: dict[ObjectKey, str] = {}
        """The selectors of the targets, as of the last look at each."""
        self.autoscalers = self.watch(kinds.HORIZONTAL_POD_AUTOSCALER)
        self.pods = context.informers.of(kinds.POD)

    def _enqueue(self, obj: object) -> None:
        """Queue an autoscaler for the end of its period: a change of it is no reason to look earlier."""
        assert isinstance(obj, autoscaling.HorizontalPodAutoscaler)
        self.queue.add_after(ObjectKey(obj.metadata.namespace, obj.metadata.name), self._period)

    async def reconcile(self, key: ObjectKey) -> float | None:
        hpa = self.autoscalers.get(key.name, key.namespace)
        if hpa is None:
            self._histories.pop(key, None)
            self._selectors.pop(key, None)
            return None
        begun = self.clock.monotonic()
        sync = Sync.of(hpa, Moment.of(self.clock))
        try:
            await self._scale(sync, key)
        except StatusError as error:
            sync.scale_unknown(str(error))
        failed = any(event.type == "Warning" for event in sync.events)
        for event in sync.events:
            self.record(hpa, event)
        if to_json(sync.hpa.status) != to_json(hpa.status):
            try:
                await self.client.update(sync.hpa, subresource="status")
            except StatusError as error:
                failed = True
                self.record(hpa, PlannedEvent("FailedUpdateStatus", str(error), "Warning"))
                self.log.warning("the status was not written", key=str(key), error=str(error))
        self._measure(sync, self.clock.monotonic() - begun, failed=failed)
        return self._period

    def _measure(self, sync: Sync, seconds: float, *, failed: bool) -> None:
        labels = metrics.action_label(0, sync.growth), "internal" if failed else "none"
        metrics.RECONCILIATIONS.labels(*labels).inc()
        metrics.RECONCILIATION_SECONDS.labels(*labels).observe(seconds)
        current = sync.hpa.status.currentReplicas
        for type_, replicas in sync.proposals:
            action = metrics.action_label(current, current if replicas is None else replicas)
            error = "internal" if replicas is None else "none"
            metrics.COMPUTATIONS.labels(action, error, type_).inc()

    async def _scale(self, sync: Sync, key: ObjectKey) -> None:
        """Decide about the target's replicas and change them. Raises: StatusError where it has no scale."""
        kind, name = target_kind(sync.hpa), sync.hpa.spec.scaleTargetRef.name
        if isinstance(kind, str):
            sync.scale_unknown(kind)
            return
        scale = await self.client.get_scale(kind, name, key.namespace)
        history = self._histories.setdefault(key, History())
        rows: Usages = []
        pods = self._pods_of(key.namespace, scale.status.selector)
        rivals: Sequence[ObjectKey] = ()
        if reads_metrics(sync.hpa, scale):
            rivals = self._rivals(key, scale.status.selector, pods)
            rows = [] if rivals else await self._usages(key.namespace, scale.status.selector)
        rescale = decide(
            sync,
            scale,
            rows,
            pods,
            history,
            self._settings,
            rivals=rivals,
            configurable_tolerance=self._tolerance,
        )
        if rescale is not None:
            await self._rescale(sync, kind, scale, rescale, history)

    async def _usages(self, namespace: str, selector: str) -> Usages:
        try:
            return (await self.client.list(pod_metrics.KIND, namespace, label_selector=selector)).items
        except StatusError as error:
            return error

    def _pods_of(self, namespace: str, selector: str) -> Sequence[core.Pod]:
        matcher = LabelSelector.parse(selector)
        pods = self.pods.by_index("namespace", namespace) if selector else ()
        return [pod for pod in pods if matcher.matches(pod.metadata.labels)]

    def _rivals(self, key: ObjectKey, selector: str, pods: Sequence[core.Pod]) -> Sequence[ObjectKey]:
        """Return the autoscalers whose selectors match one of the pods, if there are several."""
        self._selectors[key] = selector
        near = {each: text for each, text in self._selectors.items() if each.namespace == key.namespace}
        if len(near) == 1:
            return ()
        labels = {tuple(sorted(pod.metadata.labels.items())) for pod in pods}
        found = []
        for each, text in sorted(near.items()):
            matcher = LabelSelector.parse(text)
            if any(matcher.matches(dict(every)) for every in labels):
                found.append(each)
        return found if len(found) > 1 else ()

    async def _rescale(
        self, sync: Sync, kind: AnyKind, scale: autoscaling_v1.Scale, rescale: Rescale, history: History
    ) -> None:
        metadata = scale.metadata
        change = {
            "metadata": {"resourceVersion": metadata.resourceVersion},
            "spec": {"replicas": rescale.replicas},
        }
        try:
            await RESCALE_BEFORE.hit(target=metadata.name)
            await self.client.patch_scale(kind, metadata.name, metadata.namespace, change)
            await RESCALE_AFTER.hit(target=metadata.name)
        except StatusError as error:
            sync.rescale_failed(rescale, str(error))
            return
        sync.rescale_done(rescale, scale.spec.replicas, history)
