"""Build authentication and authorization from options and the watch cache."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nominee.apiserver.access.access import OPEN, Access
from nominee.apiserver.access.authentication import Authenticator, TokenFile, TokenFileError, read_token_file
from nominee.apiserver.access.authorizer import AlwaysAllow, AlwaysDeny, Authorizer, Union
from nominee.apiserver.access.node.authorizer import NodeAuthorizer
from nominee.apiserver.access.node.graph import Graph
from nominee.apiserver.access.options import AccessOptions
from nominee.apiserver.access.rbac.authorizer import RBAC
from nominee.apiserver.access.service_accounts import ServiceAccountTokens, parse_key
from nominee.apiserver.admission.permissions.certificates import CertificateApproval, CertificateSigning
from nominee.apiserver.admission.permissions.escalation import Escalation
from nominee.apiserver.admission.permissions.node_restriction import NodeRestriction
from nominee.machinery.process.component import BadConfiguration
from nominee.machinery.runtime import logs

if TYPE_CHECKING:
    from nominee.apiserver.admission.interface import Plugin
    from nominee.apiserver.cache.watch_cache import WatchCache
    from nominee.machinery.runtime.clock import Clock


@dataclass(frozen=True, slots=True)
class ServingCertificate:
    """The server's certificate chain and key, in PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class AccessSetup:
    """Authentication and authorization for the fronts, and the admission plugins that depend on them."""

    access: Access = OPEN
    admission: tuple[Plugin, ...] = ()
    accounts: ServiceAccountTokens | None = None


def make(options: AccessOptions, cache: WatchCache, clock: Clock) -> AccessSetup:
    """Build authentication and authorization from the options.

    Raises: BadConfiguration for a file that cannot be read.
    """
    try:
        accounts = None
        if options.accounts_key is not None:
            accounts = ServiceAccountTokens(options.accounts_key.read_bytes(), cache, clock)
        tokens = TokenFile(options.tokens, clock) if options.tokens is not None else None
    except (OSError, TokenFileError, ValueError) as error:
        raise BadConfiguration(str(error)) from None
    authenticator = None
    if options.authenticates:
        anonymous = options.anonymous
        if anonymous and "AlwaysAllow" in options.modes:
            logs.get().warning(
                "AnonymousAuth is not allowed with the AlwaysAllow authorizer; requests without credentials"
                " are refused"
            )
            anonymous = False
        authenticator = Authenticator(clock, tokens=tokens, accounts=accounts, anonymous=anonymous)
    if options.modes == ("AlwaysAllow",):
        access = Access(authenticator)
        return AccessSetup(access, _plugins(access, None), accounts)
    rbac = RBAC.over(cache) if "RBAC" in options.modes else None
    made: list[Authorizer] = []
    for mode in options.modes:
        if mode == "RBAC":
            assert rbac is not None
            made.append(rbac)
        elif mode == "Node":
            made.append(NodeAuthorizer(Graph(cache)))
        else:
            made.append(AlwaysAllow() if mode == "AlwaysAllow" else AlwaysDeny())
    access = Access(authenticator, Union(made))
    return AccessSetup(access, _plugins(access, rbac), accounts)


def check_files(options: AccessOptions) -> None:
    """Check the files of tokens and keys as `make` and the first token do later.

    Raises: BadConfiguration for a file that cannot be read.
    """
    try:
        if options.tokens is not None:
            read_token_file(options.tokens)
        if options.accounts_key is not None:
            parse_key(options.accounts_key.read_bytes())
    except (OSError, TokenFileError, ValueError) as error:
        raise BadConfiguration(str(error)) from None


def _plugins(access: Access, rbac: RBAC | None) -> tuple[Plugin, ...]:
    """Return the admission plugins that need users: none without authentication."""
    plugins: list[Plugin] = []
    if access.authenticator is not None:
        plugins += [
            NodeRestriction(),
            CertificateApproval(access.authorizer),
            CertificateSigning(access.authorizer),
        ]
    if rbac is not None:
        plugins.append(Escalation(rbac, access.authorizer))
    return tuple(plugins)


def serving_certificate(options: AccessOptions) -> ServingCertificate | None:
    """Read the serving certificate for the gRPC port; None without TLS.

    Raises: BadConfiguration.
    """
    if options.certificate is None or options.key is None:
        return None
    try:
        return ServingCertificate(options.certificate.read_bytes(), options.key.read_bytes())
    except OSError as error:
        raise BadConfiguration(str(error)) from None


def tls_context(options: AccessOptions) -> ssl.SSLContext | None:
    """Return the TLS context of the REST port, None without TLS. Client certificates are optional.

    Raises: BadConfiguration.
    """
    if options.certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(options.certificate, options.key)
        if options.client_ca is not None:
            context.load_verify_locations(options.client_ca)
            context.verify_mode = ssl.CERT_OPTIONAL
    except (OSError, ssl.SSLError) as error:
        raise BadConfiguration(f"TLS cannot be set up with {options.certificate}: {error}") from None
    context.set_alpn_protocols(["http/1.1"])
    return context
