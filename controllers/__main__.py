"""`python -m nominee.controllers --dir D`: the controllers as a process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nominee.controllers.certificates.shell.signer import SigningOptions
from nominee.controllers.shell.manager import Options, run_manager, select_controllers
from nominee.machinery.process.component import Process, component_command
from nominee.machinery.process.option_types import Duration

_FILE = click.Path(path_type=Path, dir_okay=False, exists=True)
_POSITIVE = Duration(above_zero=True)


@component_command("controllers")
@click.option("--controllers", default="*", show_default=True, help="Names, * for all, -NAME for all but.")
@click.option("--node-monitor-period", type=_POSITIVE, default="5s", show_default=True)
@click.option(
    "--node-monitor-grace-period",
    type=_POSITIVE,
    default="50s",
    show_default=True,
    help="How long a node without a renewed lease stays Ready.",
)
@click.option(
    "--node-startup-grace-period",
    type=_POSITIVE,
    default="60s",
    show_default=True,
    help="How long after its creation a node without the condition Ready may have none.",
)
@click.option(
    "--node-eviction-rate",
    type=click.FloatRange(min=0),
    default=0.1,
    show_default=True,
    help="How many nodes of a zone that are not ready get the taint NoExecute per second.",
)
@click.option(
    "--secondary-node-eviction-rate",
    type=click.FloatRange(min=0),
    default=0.01,
    show_default=True,
    help="The same for a large zone that is unhealthy; a small one has none.",
)
@click.option(
    "--unhealthy-zone-threshold",
    type=click.FloatRange(0, 1),
    default=0.55,
    show_default=True,
    help="The part of a zone's nodes, at least three, from which on it is unhealthy.",
)
@click.option(
    "--large-cluster-size-threshold",
    type=int,
    default=50,
    show_default=True,
    help="A zone with more nodes is large.",
)
@click.option(
    "--terminated-pod-gc-threshold",
    type=int,
    default=12500,
    show_default=True,
    help="How many ended pods are kept; 0 keeps all.",
)
@click.option(
    "--terminated-pod-gc-period",
    type=_POSITIVE,
    default="20s",
    show_default=True,
    help="How often pods are garbage collected.",
)
@click.option(
    "--pod-gc-quarantine",
    type=_POSITIVE,
    default="40s",
    show_default=True,
    help="How long a pod's node must be missing before the pod is deleted.",
)
@click.option(
    "--horizontal-pod-autoscaler-sync-period",
    type=_POSITIVE,
    default="15s",
    show_default=True,
    help="How often an autoscaler looks at the usage of its pods.",
)
@click.option(
    "--horizontal-pod-autoscaler-downscale-stabilization",
    type=Duration(),
    default="5m",
    show_default=True,
    help="How long a recommendation holds up scaling down, unless the autoscaler says otherwise.",
)
@click.option(
    "--horizontal-pod-autoscaler-cpu-initialization-period",
    type=Duration(),
    default="5m",
    show_default=True,
    help="How long after a pod's start its usage of cpu may be left out.",
)
@click.option(
    "--horizontal-pod-autoscaler-initial-readiness-delay",
    type=Duration(),
    default="30s",
    show_default=True,
    help="A pod that became unready within this time of its start was never ready.",
)
@click.option(
    "--horizontal-pod-autoscaler-tolerance",
    type=click.FloatRange(min=0),
    default=0.1,
    show_default=True,
    help="A change of the ratio of usage to target that is ignored.",
)
@click.option(
    "--root-ca-file",
    type=_FILE,
    default=None,
    show_default="the API server's authority",
    help="Certificate authority of the API server, published in each namespace.",
)
@click.option(
    "--cluster-signing-cert-file",
    type=_FILE,
    default=None,
    help="Certificate of the authority that signs CertificateSigningRequests; without it none are signed.",
)
@click.option("--cluster-signing-key-file", type=_FILE, default=None, help="The key of that authority.")
@click.option(
    "--cluster-signing-duration",
    type=_POSITIVE,
    default="8760h",
    show_default=True,
    help="How long signed certificates last, unless the request asks for less.",
)
def main(
    process: Process,
    cluster_signing_cert_file: Path | None,
    cluster_signing_key_file: Path | None,
    cluster_signing_duration: float,
    **values: Any,
) -> None:
    """Run the controllers: volumes, workloads, autoscaling, budgets, nodes, Services, garbage collection."""
    select_controllers(values["controllers"])
    signing = _signing(cluster_signing_cert_file, cluster_signing_key_file, cluster_signing_duration)
    options = Options(signing=signing, **values)
    process.run(lambda: run_manager(process, options))


def _signing(certificate: Path | None, key: Path | None, seconds_max: float) -> SigningOptions | None:
    """Return the authority that signs, None without one. Raises: click.UsageError where a file is missing."""
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise click.UsageError(
            "give both --cluster-signing-cert-file and --cluster-signing-key-file, or neither"
        )
    return SigningOptions(certificate, key, seconds_max)


if __name__ == "__main__":
    main()
