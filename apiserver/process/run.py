"""The API server's life as a process: find etcd, serve, announce."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from apiserver.access.rbac import aggregation
from apiserver.access.rbac import bootstrap as rbac_bootstrap
from apiserver.admission import claim_status_authorization
from apiserver.admission.chain import ABSENT as ABSENT_ADMISSION_PLUGINS
from apiserver.admission.chain import NAMES as ADMISSION_PLUGINS
from apiserver.admission.service_account import ServiceAccount
from apiserver.cache.reads import Reads
from apiserver.cache.watch_cache import WatchCache
from apiserver.flow_control.controller import FlowControl, Limits
from apiserver.fronts.grpc.front import ServerIdentity
from apiserver.fronts.rest.kubelets import Kubelets
from apiserver.kinds.table import fields_of
from apiserver.objects import served
from apiserver.objects.requests import RegistryAPI
from apiserver.process import access_setup as access_setup
from apiserver.process import own_service
from apiserver.process.bootstrap import bootstrap
from apiserver.process.health import add_checks
from apiserver.process.options import Options
from apiserver.process.server import ApiServer, ServerOptions
from apiserver.registry.registry import Registry
from apiserver.registry.services import default_range
from apiserver.storage.channel import EtcdTls, endpoints, nearest
from apiserver.storage.etcd_storage import EtcdStorage
from machinery.process.component import BadConfiguration, Process
from machinery.process.health import Health
from machinery.process.http_guard import same_machine

if TYPE_CHECKING:
    import ssl

    from apiserver.chain.metrics import RequestMetrics
    from apiserver.fronts.rest.server import RestServer
    from apiserver.process.access_setup import ServingCertificate


_GARBAGE_YOUNG, _GARBAGE_MIDDLE, _GARBAGE_OLD = 20_000, 20, 50
"""gc.set_threshold's."""


def settle_garbage_collection() -> None:
    """What has been loaded is never garbage; what a request leaves behind is freed without a collector.

    Python looks for cycles after each 700 objects, through all that is young, and there is little to be
    found: 6% of a busy server's processor time (perf). Here 20,000 objects go between two looks.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GARBAGE_YOUNG, _GARBAGE_MIDDLE, _GARBAGE_OLD)


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

    Raises:
        BadConfiguration: an option cannot be.
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


async def run_apiserver(process: Process, options: Options) -> None:
    """Serve until the process is told to stop; Fatal where there is no etcd to be found."""
    shown, tls, etcd_tls = read_certificates(options)
    servers = endpoints(options.etcd_servers)
    if not servers:
        found = await process.wait_for("etcd")
        servers = [nearest(found.grpc, str(found.document.get("socket", "")))]
    served.configure(process.gates)
    process.step = f"load from etcd at {','.join(servers)}"

    async def make_registry(storage: EtcdStorage, cache: WatchCache) -> RegistryAPI:
        process.step = "bootstrap"
        door = access_setup.make(options.access, cache, process.clock)
        server.access, server.accounts = door.access, door.accounts
        disabled = options.disabled_admission - options.enabled_admission
        granular = process.gates.enabled(claim_status_authorization.GATE) and not door.access.open
        claims = [claim_status_authorization.ClaimStatusAuthorization(door.access.authorizer)]
        registry = Registry(
            storage,
            cache,
            Reads(storage, cache, fields_of),
            gates=process.gates,
            clock=process.clock,
            rng=process.rng,
            event_ttl_seconds=options.event_ttl_seconds,
            disabled_admission=disabled,
            accounts=door.accounts,
            authorize=None if door.access.open else door.access.authorize_current,
            nominates_deferred_resizes=options.nominates_deferred_resizes,
            # The pods' accounts come before what a node may do with pods.
            admission=[
                *(
                    plugin
                    for plugin in (ServiceAccount(process.clock, process.rng), *door.admission)
                    if plugin.name not in disabled
                ),
                *(claims if granular else ()),
            ],
        )
        await bootstrap(registry)
        server.background.append(lambda: default_range.run(registry, process.clock))
        server.background.append(registry.repair.run)
        if "RBAC" in options.access.modes:
            await rbac_bootstrap.bootstrap(registry, cache)
            server.background.append(lambda: aggregation.run(registry, cache, process.clock))
        return registry

    flow_control = FlowControl(
        process.clock,
        Limits(
            options.requests_in_flight, options.mutating_requests_in_flight, options.priority_and_fairness
        ),
    )

    health = Health()

    def make_rest(registry: RegistryAPI, metrics: RequestMetrics) -> RestServer:
        # Starlette and what comes with it are there since the serving port was opened.
        from apiserver.fronts.rest.front import FrontOptions, RestFront
        from apiserver.fronts.rest.kubeconfig import last_port
        from apiserver.fronts.rest.server import RestServer, listen

        process.step = f"listen on {options.rest_address}"
        listener = listen(options.rest_address, preferred_port=last_port(process.directory))
        kubelets = Kubelets(process.directory, process.clock)
        front = RestFront(
            registry,
            process.clock,
            FrontOptions(
                process.version,
                health=health,
                access=server.access,
                usage=kubelets,
                nodes=kubelets,
                accounts=server.accounts,
            ),
            metrics,
            flow_control,
        )
        # Without credentials to ask for, at least no page of another site is answered.
        asks = server.access.authenticator is not None
        rest = RestServer(front if asks else same_machine(front), listener, tls=tls)
        front.address = rest.address
        server.background.append(lambda: own_service.run(registry, rest.address, process.clock))
        return rest

    identity = ServerIdentity(str(process.version), process.gates.all())
    server = ApiServer(
        ServerOptions(
            etcd_servers=servers,
            bind=options.grpc_address,
            compaction_seconds=options.compaction_seconds,
            tls=shown,
            etcd_tls=etcd_tls,
        ),
        make_registry,
        identity,
        process.clock,
        make_rest=make_rest,
        flow_control=flow_control,
    )

    for each in (health, process.serving.health):
        add_checks(
            each,
            lambda: server.cache,
            process.check_running,
            roles="RBAC" in options.access.modes,
            flow_control=options.priority_and_fairness,
        )

    async def on_ready(address: str) -> None:
        from prometheus_client import REGISTRY

        assert server.metrics is not None
        settle_garbage_collection()
        REGISTRY.register(server.metrics)
        from apiserver.fronts.rest import kubeconfig

        given = options.access
        scheme = "https" if given.secure else "http"
        authority = given.client_ca or given.certificate
        kubeconfig.write_all(process.directory, f"{scheme}://{server.rest_address}", authority, given.clients)
        trusted = {"ca": str(authority)} if given.secure else {}
        await process.announce(grpc=address, rest=server.rest_address, **trusted)

    await server.run(process.stopping, on_ready)
