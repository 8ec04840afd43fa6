"""`python -m nominee.kubelet --dir D --nodes 100`: one process that carries many nodes."""

from __future__ import annotations

from collections.abc import Mapping

import click

from nominee.kubelet.addresses import LISTED_NODES_MAX
from nominee.kubelet.features import ResizePreemptionFlavour
from nominee.kubelet.node.adopted_node import AdoptedShare
from nominee.kubelet.node.sysctls import SysctlAllowlist
from nominee.kubelet.options import Delays, Heartbeats, NodeShape
from nominee.kubelet.shell.process import KubeletConfig, run_kubelet
from nominee.machinery.process.component import Process, component_command
from nominee.machinery.process.option_types import Duration
from nominee.machinery.resources.pod_resources import EMULATED_EPHEMERAL_STORAGE, EPHEMERAL_STORAGE
from nominee.machinery.resources.quantity import Quantity, QuantityError


class _Quantity(click.ParamType[str]):
    name = "quantity"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return Quantity.parse(str(value)).canonical()
        except QuantityError as error:
            self.fail(f"{value!r}: {error}", param, ctx)


def _pairs(_: click.Context, param: click.Parameter, text: str) -> Mapping[str, str]:
    pairs = {}
    for part in filter(None, text.split(",")):
        key, equals, value = part.partition("=")
        if not equals or not key:
            raise click.BadParameter(f"{part!r}: write key=value,key=value", param=param)
        pairs[key.strip()] = value.strip()
    return pairs


def _share(_: click.Context, param: click.Parameter, text: str | None) -> AdoptedShare | None:
    try:
        return None if text is None else AdoptedShare.parse(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param=param) from None


DURATION, QUANTITY = Duration(), _Quantity()


@component_command("kubelet")
@click.option("--nodes", default=1, type=click.IntRange(0, 10_000), help="How many nodes to run.")
@click.option("--first-node", default=0, type=click.IntRange(0), help="Number of the first node.")
@click.option("--node-name-prefix", default="node-", help="Nodes are named by this and their number.")
@click.option("--node-cpu", default="4", type=QUANTITY)
@click.option("--node-memory", default="32Gi", type=QUANTITY)
@click.option("--node-pods", default="110", type=QUANTITY)
@click.option("--node-ephemeral-storage", default=EMULATED_EPHEMERAL_STORAGE, type=QUANTITY)
@click.option("--node-resources", default="", callback=_pairs, help="More resources: name=quantity,...")
@click.option("--node-labels", default="", callback=_pairs, help="key=value,...")
@click.option("--node-zones", default="", help="Zones to spread the nodes over: a,b,c.")
@click.option("--node-region", default="")
@click.option("--cpu-manager-policy", default="none", type=click.Choice(["none", "static"]))
@click.option("--memory-manager-policy", default="None", type=click.Choice(["None", "Static"]))
@click.option(
    "--memory-swap-behavior",
    default="NoSwap",
    type=click.Choice(["NoSwap", "LimitedSwap"]),
    help="With LimitedSwap, memory of containers that may swap is not resized in place.",
)
@click.option(
    "--allowed-unsafe-sysctls",
    default="",
    metavar="NAME,...",
    help="Sysctls that pods may set beside the safe ones; one that ends in * is a prefix.",
)
@click.option(
    "--resize-preemption-flavour",
    default="kep",
    type=click.Choice(["kep", "1.37"]),
    help="With 1.37 and the gate InPlacePodVerticalScalingSchedulerPreemption on, the kubelet itself preempts"
    " no pod for the resize of a critical one.",
)
@click.option("--start-delay", default="0s", type=DURATION, help="From admission until containers run.")
@click.option("--ready-delay", default="0s", type=DURATION, help="From running until ready.")
@click.option("--stop-delay", default="0s", type=DURATION, help="How long containers take to stop.")
@click.option("--actuation-delay", default="0s", type=DURATION, help="How long a resize takes.")
@click.option("--node-status-update-frequency", default="10s", type=DURATION)
@click.option("--node-status-report-frequency", default="5m", type=DURATION)
@click.option("--node-lease-duration", default="40s", type=DURATION)
@click.option(
    "--cloud-address",
    default="",
    metavar="HOST:PORT",
    help="Also run the instances of the cloud at this address.",
)
@click.option("--cloud", is_flag=True, help="As --cloud-address, with the address in DIR/run/cloud.json.")
@click.option(
    "--adopt",
    "adopts",
    default=None,
    callback=_share,
    metavar="I/N",
    help="Run the nodes that `nominee import` has brought: those of the I-th of N kubelets, from 0.",
)
def main(
    process: Process,
    *,
    nodes: int,
    first_node: int,
    node_name_prefix: str,
    node_cpu: str,
    node_memory: str,
    node_pods: str,
    node_ephemeral_storage: str,
    node_resources: Mapping[str, str],
    node_labels: Mapping[str, str],
    node_zones: str,
    node_region: str,
    cpu_manager_policy: str,
    memory_manager_policy: str,
    memory_swap_behavior: str,
    allowed_unsafe_sysctls: str,
    resize_preemption_flavour: ResizePreemptionFlavour,
    start_delay: float,
    ready_delay: float,
    stop_delay: float,
    actuation_delay: float,
    node_status_update_frequency: float,
    node_status_report_frequency: float,
    node_lease_duration: float,
    cloud_address: str,
    cloud: bool,
    adopts: AdoptedShare | None,
) -> None:
    """Register nodes, run the pods bound to them, and resize them in place."""
    if first_node + nodes > LISTED_NODES_MAX:
        raise click.BadParameter(
            f"{first_node} and --nodes {nodes} are together above {LISTED_NODES_MAX}: nodes beyond have no"
            " addresses for their pods",
            param_hint="--first-node",
        )
    try:
        sysctls = SysctlAllowlist.of(process.version, filter(None, allowed_unsafe_sysctls.split(",")))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--allowed-unsafe-sysctls") from None
    config = KubeletConfig(
        nodes=nodes,
        first_node=first_node,
        name_prefix=node_name_prefix,
        shape=NodeShape(
            capacity={
                "cpu": node_cpu,
                "memory": node_memory,
                "pods": node_pods,
                EPHEMERAL_STORAGE: node_ephemeral_storage,
                **node_resources,
            },
            labels=node_labels,
            zones=tuple(filter(None, node_zones.split(","))),
            region=node_region,
            cpu_manager_policy=cpu_manager_policy,
            memory_manager_policy=memory_manager_policy,
            swap_behavior=memory_swap_behavior,
        ),
        delays=Delays(start=start_delay, ready=ready_delay, stop=stop_delay, actuation=actuation_delay),
        beats=Heartbeats(
            status_frequency=node_status_update_frequency,
            status_report_frequency=node_status_report_frequency,
            lease_duration=node_lease_duration,
        ),
        sysctls=sysctls,
        resize_preemption_flavour=resize_preemption_flavour,
        cloud_address=cloud_address,
        cloud=cloud,
        adopts=adopts,
    )
    process.run(lambda: run_kubelet(process, config))


if __name__ == "__main__":
    main()
