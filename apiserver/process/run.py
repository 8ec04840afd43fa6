"""Run the API server as a process: read options and certificates, find etcd, serve."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nominee.apiserver.admission.chain import ABSENT as ABSENT_ADMISSION_PLUGINS
from nominee.apiserver.admission.chain import NAMES as ADMISSION_PLUGINS
from nominee.apiserver.flow_control.controller import FlowControl, Limits
from nominee.apiserver.fronts.grpc.front import ServerIdentity
from nominee.apiserver.objects import served
from nominee.apiserver.process import access_setup
from nominee.apiserver.process.options import Options
from nominee.apiserver.process.server import ApiServer, ServerOptions
from nominee.apiserver.process.wiring import Wiring
from nominee.machinery.client.etcd_channel import EtcdTls, nearest
from nominee.machinery.client.etcd_endpoints import endpoints
from nominee.machinery.process.component import BadConfiguration, Process

if TYPE_CHECKING:
    import ssl

    from nominee.apiserver.process.access_setup import ServingCertificate


def _etcd_tls(options: Options) -> EtcdTls | None:
    if options.etcd_ca is None:
        if options.etcd_certificate is not None or "https://" in options.etcd_servers:
            raise BadConfiguration("TLS to etcd needs --etcd-cafile")
        return None
    if (options.etcd_certificate is None) is not (options.etcd_key is None):
        raise BadConfiguration("--etcd-certfile and --etcd-keyfile go together")
    paths = (options.etcd_ca, options.etcd_certificate, options.etcd_key)
    try:
        authority, *pair = (path.read_bytes() if path is not None else None for path in paths)
    except OSError as error:
        raise BadConfiguration(str(error)) from None
    assert authority is not None
    return EtcdTls(authority, *pair)


def read_certificates(
    options: Options,
) -> tuple[ServingCertificate | None, ssl.SSLContext | None, EtcdTls | None]:
    """Check the options that need no other process, and read the certificates that they name.

    Raises: BadConfiguration for an invalid option or an unreadable file.
    """
    unknown = options.enabled_admission | (options.disabled_admission - ABSENT_ADMISSION_PLUGINS)
    unknown -= set(ADMISSION_PLUGINS)
    if unknown:
        names, known = ", ".join(sorted(unknown)), ", ".join(ADMISSION_PLUGINS)
        raise BadConfiguration(f"unknown admission plugins: {names}; known are {known}")
    if (
        options.priority_and_fairness
        and options.requests_in_flight + options.mutating_requests_in_flight <= 0
    ):
        raise BadConfiguration(
            "with priority and fairness --max-requests-inflight and --max-mutating-requests-inflight"
            " cannot both be 0"
        )
    return (
        access_setup.serving_certificate(options.access),
        access_setup.tls_context(options.access),
        _etcd_tls(options),
    )


def check_options(options: Options) -> None:
    """Check the options and the files that they name, without etcd.

    Raises: BadConfiguration for an invalid option or an unreadable file.
    """
    read_certificates(options)
    access_setup.check_files(options.access)


async def run_apiserver(process: Process, options: Options) -> None:
    """Serve until the process is stopped.

    Raises: Fatal when there is no etcd.
    """
    certificate, tls, etcd_tls = read_certificates(options)
    servers = endpoints(options.etcd_servers)
    if not servers:
        etcd = await process.wait_for("etcd")
        members = endpoints(str(etcd.document.get("members", "")))
        servers = members or [nearest(etcd.grpc, str(etcd.document.get("socket", "")))]
    served.configure(process.gates, owns_interpreter=process.owns_interpreter)
    process.step = f"load from etcd at {','.join(servers)}"
    wiring = Wiring(process, options, tls)
    limits = Limits(
        options.requests_in_flight, options.mutating_requests_in_flight, options.priority_and_fairness
    )
    server = ApiServer(
        ServerOptions(
            etcd_servers=servers,
            bind=options.grpc_address,
            compaction_seconds=options.compaction_seconds,
            tls=certificate,
            etcd_tls=etcd_tls,
        ),
        wiring.make_parts,
        ServerIdentity(str(process.version), process.gates.all()),
        process.clock,
        make_rest=wiring.make_rest if options.rest_address else None,
        flow_control=FlowControl(process.clock, limits),
    )
    wiring.watch(lambda: server.cache)

    await server.run(process.stopping, wiring.announce)
