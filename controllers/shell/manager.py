"""The table of controllers, and the process that runs them: the part of kube-controller-manager."""

from __future__ import annotations

import functools
from collections.abc import Callable, Set
from dataclasses import dataclass
from pathlib import Path

import anyio
import click

from nominee.controllers.certificates.shell.approver import Approver
from nominee.controllers.certificates.shell.cleaner import Cleaner
from nominee.controllers.certificates.shell.signer import Signer, SigningOptions
from nominee.controllers.cron_jobs.shell.cron_jobs import CronJobController
from nominee.controllers.daemon_sets.shell.daemon_sets import DaemonSetController
from nominee.controllers.deployments.shell.deployments import DeploymentController
from nominee.controllers.devices.shell.claims import ResourceClaimController
from nominee.controllers.devices.shell.eviction import DeviceTaintEviction
from nominee.controllers.disruption.shell.disruption import Disruption, StaleDisruption
from nominee.controllers.endpoints.shell.endpoints import EndpointsController
from nominee.controllers.endpoints.shell.mirroring import EndpointSliceMirroringController
from nominee.controllers.endpoints.shell.slices import EndpointSliceController
from nominee.controllers.garbage.shell.collector import GarbageCollector
from nominee.controllers.garbage.shell.namespaces import NamespaceController
from nominee.controllers.garbage.shell.pod_gc import PodGarbageCollector
from nominee.controllers.horizontal_pod_autoscalers.replica_calculator import Settings
from nominee.controllers.horizontal_pod_autoscalers.shell.horizontal_pod_autoscalers import (
    HorizontalPodAutoscalerController,
)
from nominee.controllers.jobs.shell.expiry import FinishedJobs
from nominee.controllers.jobs.shell.jobs import JobController, OrphanedPods
from nominee.controllers.nodes.shell.eviction import TaintEviction
from nominee.controllers.nodes.shell.lifecycle import NodeLifecycle
from nominee.controllers.nodes.zones import Rates
from nominee.controllers.quotas.shell.quotas import QuotaController
from nominee.controllers.replica_sets.shell.replica_sets import (
    ReplicaSetController,
    ReplicationControllerController,
)
from nominee.controllers.service_accounts.shell.accounts import ServiceAccountController
from nominee.controllers.service_accounts.shell.root_certificate import RootCertificatePublisher
from nominee.controllers.service_cidrs.shell.service_cidrs import ServiceCIDRController
from nominee.controllers.shell.controller import Context, InformerSet, Recorders, Runner
from nominee.controllers.stateful_sets.shell.stateful_sets import StatefulSetController
from nominee.controllers.volumes.shell.binder import ClaimController, VolumeController
from nominee.controllers.volumes.shell.protection import ClaimProtection, VolumeProtection
from nominee.controllers.volumes.shell.provisioner import Provisioner
from nominee.machinery.api import kinds
from nominee.machinery.process.component import Fatal, Process
from nominee.machinery.process.run_files import RunFile
from nominee.machinery.process.serving_port.debug_state import DebugState


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of the process. Times are in seconds."""

    controllers: str = "*"
    node_monitor_period: float = 5.0
    node_monitor_grace_period: float = 50.0
    node_startup_grace_period: float = 60.0
    node_eviction_rate: float = 0.1
    secondary_node_eviction_rate: float = 0.01
    unhealthy_zone_threshold: float = 0.55
    large_cluster_size_threshold: int = 50
    terminated_pod_gc_threshold: int = 12500
    terminated_pod_gc_period: float = 20.0
    pod_gc_quarantine: float = 40.0
    horizontal_pod_autoscaler_sync_period: float = 15.0
    horizontal_pod_autoscaler_downscale_stabilization: float = 300.0
    horizontal_pod_autoscaler_cpu_initialization_period: float = 300.0
    horizontal_pod_autoscaler_initial_readiness_delay: float = 30.0
    horizontal_pod_autoscaler_tolerance: float = 0.1
    root_ca_file: Path | None = None
    signing: SigningOptions | None = None


TABLE: dict[str, Callable[[Context, Options], Runner]] = {
    "persistentvolume-binder-controller": lambda context, _: ClaimController(context),
    "persistentvolume-phases-controller": lambda context, _: VolumeController(context),
    "persistentvolumeclaim-protection-controller": lambda context, _: ClaimProtection(context),
    "persistentvolume-protection-controller": lambda context, _: VolumeProtection(context),
    "delayed-provisioner": lambda context, _: Provisioner(context),
    "node-lifecycle-controller": lambda context, options: NodeLifecycle(
        context,
        context.informers.of(kinds.POD),
        monitor_seconds=options.node_monitor_period,
        grace_seconds=options.node_monitor_grace_period,
        startup_grace_seconds=options.node_startup_grace_period,
        rates=Rates(
            normal=options.node_eviction_rate,
            secondary=options.secondary_node_eviction_rate,
            unhealthy_threshold=options.unhealthy_zone_threshold,
            large_size_threshold=options.large_cluster_size_threshold,
        ),
    ),
    "daemonset-controller": lambda context, _: DaemonSetController(context),
    "deployment-controller": lambda context, _: DeploymentController(context),
    "replicaset-controller": lambda context, _: ReplicaSetController(context),
    "statefulset-controller": lambda context, _: StatefulSetController(context),
    "job-controller": lambda context, _: JobController(context),
    "job-controller-orphaned-pods": lambda context, _: OrphanedPods(context),
    "ttl-after-finished-controller": lambda context, _: FinishedJobs(context),
    "cronjob-controller": lambda context, _: CronJobController(context),
    "replicationcontroller-controller": lambda context, _: ReplicationControllerController(context),
    "horizontal-pod-autoscaler-controller": lambda context, options: HorizontalPodAutoscalerController(
        context,
        Settings(
            cpu_initialization_period=options.horizontal_pod_autoscaler_cpu_initialization_period,
            initial_readiness_delay=options.horizontal_pod_autoscaler_initial_readiness_delay,
            downscale_stabilization=options.horizontal_pod_autoscaler_downscale_stabilization,
            tolerance=options.horizontal_pod_autoscaler_tolerance,
        ),
        options.horizontal_pod_autoscaler_sync_period,
    ),
    "resourcequota-controller": lambda context, _: QuotaController(context),
    "disruption-controller": lambda context, _: Disruption(context),
    "disruption-controller-stale-pods": lambda context, _: StaleDisruption(context),
    "pod-garbage-collector-controller": lambda context, options: PodGarbageCollector(
        context,
        period_seconds=options.terminated_pod_gc_period,
        quarantine_seconds=options.pod_gc_quarantine,
        ended_pods_max=options.terminated_pod_gc_threshold,
    ),
    "garbage-collector-controller": lambda context, _: GarbageCollector(context),
    "namespace-controller": lambda context, _: NamespaceController(context),
    "device-taint-eviction-controller": lambda context, _: DeviceTaintEviction(context),
    "resourceclaim-controller": lambda context, _: ResourceClaimController(context),
    "serviceaccount-controller": lambda context, _: ServiceAccountController(context),
    "root-ca-certificate-publisher-controller": lambda context, _: RootCertificatePublisher(context),
    "taint-eviction-controller": lambda context, _: TaintEviction(context, context.informers.of(kinds.POD)),
    "certificatesigningrequest-approving-controller": lambda context, _: Approver(context),
    "certificatesigningrequest-signing-controller": lambda context, options: Signer(context, options.signing),
    "certificatesigningrequest-cleaner-controller": lambda context, _: Cleaner(context),
    "endpoints-controller": lambda context, _: EndpointsController(context),
    "endpointslice-controller": lambda context, _: EndpointSliceController(context),
    "endpointslice-mirroring-controller": lambda context, _: EndpointSliceMirroringController(context),
    "service-cidr-controller": lambda context, _: ServiceCIDRController(context),
}
"""One row a controller: its name on the command line, and how it is constructed."""


ALIASES: dict[str, str] = {
    "csrapproving": "certificatesigningrequest-approving-controller",
    "csrcleaner": "certificatesigningrequest-cleaner-controller",
    "csrsigning": "certificatesigningrequest-signing-controller",
    "daemonset": "daemonset-controller",
    "cronjob": "cronjob-controller",
    "deployment": "deployment-controller",
    "disruption": "disruption-controller",
    "endpoint": "endpoints-controller",
    "endpointslice": "endpointslice-controller",
    "endpointslicemirroring": "endpointslice-mirroring-controller",
    "garbagecollector": "garbage-collector-controller",
    "job": "job-controller",
    "horizontalpodautoscaling": "horizontal-pod-autoscaler-controller",
    "namespace": "namespace-controller",
    "nodelifecycle": "node-lifecycle-controller",
    "persistentvolume-binder": "persistentvolume-binder-controller",
    "podgc": "pod-garbage-collector-controller",
    "pv-protection": "persistentvolume-protection-controller",
    "pvc-protection": "persistentvolumeclaim-protection-controller",
    "replicaset": "replicaset-controller",
    "replicationcontroller": "replicationcontroller-controller",
    "resourcequota": "resourcequota-controller",
    "root-ca-cert-publisher": "root-ca-certificate-publisher-controller",
    "serviceaccount": "serviceaccount-controller",
    "statefulset": "statefulset-controller",
    "ttl-after-finished": "ttl-after-finished-controller",
}
"""Names from before 1.28, which kube-controller-manager still accepts."""


def select_controllers(text: str) -> list[str]:
    """Return the names that `--controllers` selects: `*` is all, `-name` all but, `name` only.

    Raises: click.BadParameter for an unknown name. Source: kube-controller-manager's --controllers.
    """
    wanted = [_canonical(part.strip()) for part in text.split(",") if part.strip()]
    for part in wanted:
        if part != "*" and part.removeprefix("-") not in TABLE:
            raise click.BadParameter(
                f'"{part.removeprefix("-")}" is not in the list of known controllers: {", ".join(TABLE)}'
            )
    return [name for name in TABLE if name in wanted or ("*" in wanted and f"-{name}" not in wanted)]


def _canonical(part: str) -> str:
    name = part.removeprefix("-")
    return part.removesuffix(name) + ALIASES.get(name, name)


def _authority(process: Process, options: Options) -> str:
    """Return the authority (PEM) of the API server: a file's, or the one that the API server names."""
    run_file = RunFile.read(process.directory, "apiserver")
    path = options.root_ca_file or (run_file.document.get("ca") if run_file is not None else None)
    try:
        return Path(path).read_text(encoding="ascii") if path else ""
    except (OSError, UnicodeDecodeError) as error:
        raise Fatal(f"the root certificate cannot be read: {path}: {error}") from None


def _check_started(name: str, started: Set[str]) -> None:
    """Check that a controller has started; one that ends later ends the process."""
    if name not in started:
        raise RuntimeError("not started")


async def run_manager(process: Process, options: Options) -> None:
    """Run the chosen controllers until cancelled."""
    names = select_controllers(options.controllers)
    client = await process.client(user_agent=f"kube-controller-manager/v{process.version}")
    recorders = Recorders(client, process.clock)
    informers = InformerSet(client, process.clock, process.rng)
    context = Context(
        client=client,
        informers=informers,
        clock=process.clock,
        recorders=recorders,
        gates=process.gates,
        log=process.log,
        root_ca=_authority(process, options),
    )
    controllers = [TABLE[name](context, options) for name in names]
    state = DebugState(process.serving, informers.copies())
    state.add(
        "outstanding", lambda: {each.name: keys for each in controllers if (keys := each.outstanding())}
    )
    started: set[str] = set()
    for name in names:
        process.serving.health.add(name, functools.partial(_check_started, name, started), ["healthz"])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(informers.run)
        tasks.start_soon(recorders.run)
        await informers.wait_synced()
        for name, controller in zip(names, controllers, strict=True):
            tasks.start_soon(controller.run)
            started.add(name)
        process.step = "create the service account default of the namespace default"
        for controller in controllers:
            if isinstance(controller, ServiceAccountController):
                await controller.wait_first_created()
        await process.announce()
        await process.stopping.wait()
        tasks.cancel_scope.cancel()
