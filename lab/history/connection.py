"""Connect to the etcd of a state directory."""

from __future__ import annotations

from pathlib import Path

import grpc.aio

from nominee.lab.history.etcd_watch import HistoryUnavailable
from nominee.localcluster.credentials.etcd_pki import EtcdPki
from nominee.localcluster.etcd import server as etcd
from nominee.localcluster.supervisor.directory import StateDirectory
from nominee.localcluster.supervisor.model.node_ranges import option_value
from nominee.localcluster.supervisor.model.spec import ClusterSpec
from nominee.machinery.client.etcd_channel import EtcdTls, connect, nearest
from nominee.machinery.client.etcd_endpoints import endpoints


async def connect_to_etcd(directory: Path) -> grpc.aio.Channel:
    """Return a channel to the running etcd of a cluster: its own, or that of `nominee up --etcd-servers`.

    Raises:
        HistoryUnavailable: no etcd runs there; the message names the directory.
    """
    state = StateDirectory(directory)
    document = next(
        (each for each in state.live_run_files().values() if each.get("component") == "etcd"), None
    )
    if document is None:
        servers = _other_servers(state)
        if not servers:
            raise HistoryUnavailable(f"no etcd runs in {directory}")
        return await connect(servers)
    certificates = document.get(etcd.CERTIFICATES)
    members = endpoints(str(document.get("members", "")))
    if not certificates:
        return await connect(members or [str(document["grpc"])])
    try:
        pki = EtcdPki(Path(str(certificates)))
        certificate, key = pki.pair("apiserver-etcd-client")
        tls = EtcdTls(pki.ca.read_bytes(), certificate.read_bytes(), key.read_bytes())
    except OSError as error:
        raise HistoryUnavailable(f"the client certificate of etcd cannot be read: {error}") from None
    return await connect(members or [nearest(str(document["grpc"]), str(document.get("socket", "")))], tls)


def read_plan(directory: Path) -> ClusterSpec | None:
    """Return the plan of the last `nominee up` in a state directory, or None."""
    try:
        return ClusterSpec.from_json(StateDirectory(directory).plan.read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _other_servers(state: StateDirectory) -> list[str]:
    """Return the etcd that the plan names, if the cluster runs and has no etcd of its own."""
    if not any(each.get("component") == "apiserver" for each in state.live_run_files().values()):
        return []
    plan = read_plan(state.path)
    for process in plan.processes if plan is not None else ():
        if process.component == "apiserver":
            return endpoints(option_value(process.argv, "--etcd-servers", ""))
    return []
