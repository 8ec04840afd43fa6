"""The parts of an API server process: registry, REST front, health checks, run file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nominee.apiserver.access.rbac import aggregation
from nominee.apiserver.access.rbac import bootstrap as rbac_bootstrap
from nominee.apiserver.admission.permissions import claim_status_authorization
from nominee.apiserver.admission.pods.service_account import ServiceAccount
from nominee.apiserver.cache.reads import Reads
from nominee.apiserver.cache.watch_cache import WatchCache
from nominee.apiserver.fronts.rest.nodes.kubelets import Kubelets
from nominee.apiserver.kinds.table import fields_of
from nominee.apiserver.process import access_setup, freed_memory, own_service
from nominee.apiserver.process.bootstrap import bootstrap
from nominee.apiserver.process.health import add_checks
from nominee.apiserver.process.options import Options
from nominee.apiserver.process.server import Parts, RestPart, Serving, Task
from nominee.apiserver.process.server_leases import ServerLeases
from nominee.apiserver.registry.registry import Registry
from nominee.apiserver.registry.services import default_range
from nominee.apiserver.storage.etcd_storage import EtcdStorage
from nominee.machinery.process.component import Process
from nominee.machinery.process.http.http_guard import same_machine
from nominee.machinery.process.serving_port.health import Health

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from nominee.apiserver.access.access import Access
    from nominee.apiserver.access.service_accounts import ServiceAccountTokens
    from nominee.apiserver.admission.interface import Plugin
    from nominee.apiserver.chain.filters import Dependencies
    from nominee.apiserver.registry.services.repair import Repair


class Wiring:
    """The parts of an API server, built from the options of its process when the server asks for them."""

    def __init__(self, process: Process, options: Options, tls: ssl.SSLContext | None) -> None:
        self._process = process
        self._options = options
        self._tls = tls
        self._health = Health()
        self._leases: ServerLeases | None = None
        """Set for one of several API servers."""
        self._repair: Repair | None = None
        self._accounts: ServiceAccountTokens | None = None
        self._kubelets = Kubelets(process.directory, process.clock)

    def watch(self, cache: Callable[[], WatchCache | None]) -> None:
        """Add the health checks; `cache` returns None until there is a cache."""
        for health in (self._health, self._process.serving.health):
            add_checks(
                health,
                cache,
                self._process.check_running,
                self._check_repaired,
                roles="RBAC" in self._options.access.modes,
                flow_control=self._options.priority_and_fairness,
            )

    async def make_parts(self, storage: EtcdStorage, cache: WatchCache) -> Parts:
        """Build the registry over a loaded cache, and create the objects that every cluster begins with."""
        process, options = self._process, self._options
        process.step = "bootstrap"
        setup = access_setup.make(options.access, cache, process.clock)
        self._accounts = setup.accounts
        if not process.one_per_directory:
            self._leases = ServerLeases(storage)
        registry = Registry(
            storage,
            cache,
            Reads(storage, cache, fields_of),
            gates=process.gates,
            clock=process.clock,
            rng=process.rng,
            event_ttl_seconds=int(options.event_ttl_seconds),
            disabled_admission=self._disabled_admission,
            accounts=setup.accounts,
            authorize=None if setup.access.open else setup.access.authorize,
            nominates_deferred_resizes=options.nominates_deferred_resizes,
            admission=self._admission(setup.access, setup.admission),
        )
        self._repair = registry.repair
        await bootstrap(registry)
        background: list[Task] = []
        if process.owns_interpreter:
            background.append(lambda: freed_memory.run(process.clock))
        background.append(lambda: default_range.run(registry, process.clock))
        background.append(registry.repair.run)
        if "RBAC" in options.access.modes:
            await rbac_bootstrap.bootstrap(registry, cache)
            background.append(lambda: aggregation.run(registry, cache, process.clock))
        return Parts(registry=registry, access=setup.access, background=background, usage=self._kubelets)

    def _check_repaired(self) -> None:
        """Raise RuntimeError until the addresses of Services were repaired once."""
        if self._repair is None:
            raise RuntimeError("not started")
        self._repair.check()

    @property
    def _is_first(self) -> bool:
        """Return whether this is the only API server of the directory, or the first (`apiserver-0`)."""
        index = self._process.name.rpartition("-")[2]
        return not index.isdecimal() or int(index) == 0

    @property
    def _kubeconfig(self) -> str:
        """Return the name of the admin's kubeconfig file: each further API server has its own."""
        return "kubeconfig" if self._is_first else f"{self._process.name}.kubeconfig"

    @property
    def _disabled_admission(self) -> frozenset[str]:
        return self._options.disabled_admission - self._options.enabled_admission

    def _admission(self, access: Access, plugins: tuple[Plugin, ...]) -> list[Plugin]:
        """Return the admission plugins that depend on options and authorization, in order."""
        process = self._process
        # ServiceAccount precedes NodeRestriction, which reads the pods' accounts.
        ordered = (ServiceAccount(process.clock, process.rng), *plugins)
        enabled = [plugin for plugin in ordered if plugin.name not in self._disabled_admission]
        if process.gates.enabled(claim_status_authorization.GATE) and not access.open:
            enabled.append(claim_status_authorization.ClaimStatusAuthorization(access.authorizer))
        return enabled

    def make_rest(self, dependencies: Dependencies) -> RestPart:
        """Listen on the REST address, and build the front that serves there."""
        # Deferred: Starlette is imported already when the serving port opened.
        from nominee.apiserver.fronts.rest.front import FrontOptions, RestFront
        from nominee.apiserver.fronts.rest.health.components import Components
        from nominee.apiserver.fronts.rest.kubeconfig import last_port
        from nominee.apiserver.fronts.rest.server import RestServer, listen

        process = self._process
        process.step = f"listen on {self._options.rest_address}"
        port = last_port(process.directory, self._kubeconfig)
        listener = listen(self._options.rest_address, preferred_port=port)
        options = FrontOptions(
            process.version,
            health=self._health,
            usage=self._kubelets,
            nodes=self._kubelets,
            components=Components(process.directory, self._health),
            accounts=self._accounts,
        )
        front = RestFront(dependencies, options)
        # Without authentication, at least refuse requests from pages of other sites.
        authenticates = dependencies.access.authenticator is not None
        rest = RestServer(front if authenticates else same_machine(front), listener, tls=self._tls)
        front.address = rest.address
        registry, leases = dependencies.registry, self._leases
        return RestPart(rest, [lambda: own_service.run(registry, rest.address, process.clock, leases)])

    async def announce(self, serving: Serving) -> None:
        """Register the metrics, and write the kubeconfig files and the run file with both addresses."""
        process, access = self._process, self._options.access
        process.serving.metrics().register(serving.metrics)
        if not self._options.rest_address:
            await process.announce(grpc=serving.address)
            return
        from nominee.apiserver.fronts.rest import kubeconfig

        scheme = "https" if access.secure else "http"
        authority = access.client_ca or access.certificate
        url = f"{scheme}://{serving.rest_address}"
        kubeconfig.write_all(process.directory, url, authority, access.clients, name=self._kubeconfig)
        trusted = {"ca": str(authority)} if access.secure else {}
        await process.announce(grpc=serving.address, rest=serving.rest_address, **trusted)
