"""`nominee status`: the processes, their versions, addresses and memory."""

from __future__ import annotations

from pathlib import Path

import click

from nominee.commands.common import directory_option, echo_json, output_option
from nominee.localcluster.components import BY_NAME
from nominee.localcluster.credentials.etcd_pki import EtcdPki
from nominee.localcluster.process_usage import pss_bytes
from nominee.localcluster.supervisor.commands.client import NotRunningError, call
from nominee.localcluster.supervisor.directory import JsonObject, StateDirectory, read_json
from nominee.localcluster.supervisor.report import ANNOUNCED
from nominee.machinery.printing.tables import table
from nominee.machinery.process.serving_port.serving_client import HttpError, ServingPort, request

_HEALTH_SECONDS_MAX = 1.0
_ETCD = "etcd"


@click.command()
@directory_option
@output_option("table", "json", "prometheus-sd")
def status(directory: Path, output: str) -> None:
    """Show the processes and their state.

    The columns are process, state, restarts, version, gates that differ from their defaults, addresses
    and memory (PSS). A process that runs but fails its health check is `unhealthy`. The exit status is 1
    if no cluster runs in the directory.

    `-o prometheus-sd` prints the processes that serve metrics as targets for Prometheus' file_sd_configs; the
    bearer token that they require is in D/pki/serving.token.
    """
    cluster = running_cluster(directory)
    if output == "prometheus-sd":
        echo_json(targets(cluster))
        return
    _add_memory(cluster)
    if output == "json":
        echo_json(cluster)
        return
    rows = [_row(component) for component in cluster["components"]]
    if cluster["supervisor"] is not None:
        rows.append(["(supervisor)", "ready", str(cluster["supervisor"]["pid"]), "0", "", "", "", "", "",
                     _mib(cluster["supervisor"]["pssBytes"])])  # fmt: skip
    rows.append(["(sum)", "", "", "", "", "", "", "", "", _mib(cluster["pssBytes"])])
    header = ["COMPONENT", "STATE", "PID", "RESTARTS", "VERSION", "GATES", "GRPC", "REST", "HTTP", "PSS"]
    for line in table(header, rows):
        click.echo(line)


def running_cluster(directory: Path) -> JsonObject:
    """Return the description of a running cluster; each component has `healthy`, None if it is not checked.

    Raises:
        click.ClickException: no cluster runs in the directory.
    """
    state = StateDirectory(directory)
    try:
        cluster: JsonObject = call(state, "status", timeout_seconds=10.0)["cluster"]
    except NotRunningError as error:
        unsupervised = _unsupervised(state)
        if unsupervised is None:
            raise click.ClickException(f"{error}; start one with `nominee up`") from None
        cluster = unsupervised
    except TimeoutError as error:
        raise click.ClickException(str(error)) from None
    for component in cluster["components"]:
        component["healthy"] = _is_healthy(component, state) if component["state"] == "ready" else None
    return cluster


def targets(cluster: JsonObject) -> list[JsonObject]:
    """Return the processes that serve metrics, each as a target group of Prometheus' service discovery.

    `job` is upstream's name of the component, as in the dashboards that others have made for it.
    """
    return [
        {
            "targets": [component["http"]],
            "labels": {
                "job": next(iter(BY_NAME[component["component"]].aliases), component["component"]),
                "component": component["component"],
                "process": component["name"],
                "version": component.get("emulatedVersion") or component.get("version") or "",
                "cluster": cluster["directory"],
            },
        }
        for component in cluster["components"]
        if component.get("http") and component["component"] in BY_NAME and component["component"] != _ETCD
    ]


def _row(component: JsonObject) -> list[str]:
    return [
        component["name"],
        component["state"] if component["healthy"] is not False else "unhealthy",
        str(component["pid"] or "-"),
        str(component["restarts"]),
        component.get("emulatedVersion") or component.get("version") or "-",
        _gates(component),
        component.get("grpc", "-"),
        component.get("rest", "-"),
        component.get("http", "-"),
        _mib(component["pssBytes"]),
    ]


def _gates(component: JsonObject) -> str:
    """Return the gates that differ from the version's defaults, and the autoscaler's --compat.

    The JSON output has all gates that the component reads.
    """
    compat = [f"--compat={component['compat']}"] if component.get("compat") else []
    set_here = [f"{gate}={str(on).lower()}" for gate, on in changed_gates(component).items()]
    return ",".join([*compat, *set_here]) or "-"


def changed_gates(component: JsonObject) -> dict[str, bool]:
    """Return the gates of a running component that differ from the defaults of its version."""
    # 7 ms that --help and completion would pay.
    from nominee.machinery.features import gates as versions

    effective = component.get("featureGates")
    if not effective:
        return {}
    version = versions.Version.parse(component["emulatedVersion"])
    defaults = versions.Gates(component["component"], version).all()
    return {gate: on for gate, on in effective.items() if defaults.get(gate) != on}


def _mib(size: int | None) -> str:
    return "-" if size is None else f"{size / 2**20:.1f}Mi"


def _unsupervised(state: StateDirectory) -> JsonObject | None:
    """Return the processes without a supervisor (`honcho start`), from the run files; None without any."""
    live = state.live_run_files()
    if not live:
        return None
    return {
        "directory": str(state.path),
        "ready": True,
        "supervisor": None,
        "components": [
            {
                "name": name,
                "component": document.get("component", name),
                "state": "ready",
                "pid": document["pid"],
                "restarts": 0,
                **{key: document[key] for key in ANNOUNCED if key in document},
            }
            for name, document in live.items()
        ],
    }


def _is_healthy(component: JsonObject, state: StateDirectory) -> bool | None:
    # 80 ms that --help and completion would pay.
    from nominee.localcluster.etcd import server as etcd

    known = BY_NAME.get(component["component"])
    if known is None:
        return None
    certificates = (read_json(state.run_file(component["name"])) or {}).get(etcd.CERTIFICATES)
    if certificates:
        return etcd.healthy(component["grpc"], _HEALTH_SECONDS_MAX, EtcdPki(Path(certificates)))
    if not component.get("http"):
        return None
    try:
        port = ServingPort(component["http"])
        return request(port, known.ready_path, timeout_seconds=_HEALTH_SECONDS_MAX).status == 200
    except HttpError:
        return False


def _add_memory(cluster: JsonObject) -> None:
    processes = [*cluster["components"], *([cluster["supervisor"]] if cluster["supervisor"] else [])]
    for process in processes:
        process["pssBytes"] = pss_bytes(process["pid"]) if process["pid"] else None
    cluster["pssBytes"] = sum(process["pssBytes"] or 0 for process in processes)
