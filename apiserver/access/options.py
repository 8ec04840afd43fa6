"""The options of authentication and authorization, with kube-apiserver's names."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click

from nominee.apiserver.access.authorizer import MODES


@dataclass(frozen=True, slots=True)
class AccessOptions:
    """The options as given; None and "" are the defaults: plain ports, and every client is admin."""

    certificate: Path | None = None
    key: Path | None = None
    client_ca: Path | None = None
    tokens: Path | None = None
    accounts_key: Path | None = None
    anonymous: bool = True
    modes: tuple[str, ...] = ("AlwaysAllow",)
    clients: Path | None = None

    @property
    def secure(self) -> bool:
        """Whether the ports use TLS."""
        return self.certificate is not None

    @property
    def authenticates(self) -> bool:
        """Whether requests are authenticated."""
        return self.client_ca is not None or self.tokens is not None


OPEN_PORTS = AccessOptions()


def _modes(context: click.Context, parameter: click.Parameter, text: str) -> tuple[str, ...]:
    del context
    modes = tuple(mode.strip() for mode in text.split(",") if mode.strip())
    unknown = [mode for mode in modes if mode not in MODES]
    if unknown:
        raise click.BadParameter(
            f'authorization-mode "{unknown[0]}" is not a valid mode; valid are {", ".join(MODES)}',
            param=parameter,
        )
    if len(set(modes)) != len(modes):
        raise click.BadParameter("a mode may be given once", param=parameter)
    if not modes:
        raise click.BadParameter("at least one authorization-mode must be passed", param=parameter)
    return modes


_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_OPTIONS = (
    click.option(
        "--tls-cert-file",
        "certificate",
        type=_FILE,
        help="The server's certificate (PEM); without it the ports have no TLS.",
    ),
    click.option("--tls-private-key-file", "key", type=_FILE, help="Key of that certificate."),
    click.option(
        "--client-ca-file",
        "client_ca",
        type=_FILE,
        help="Authenticate clients with a certificate of this authority.",
    ),
    click.option(
        "--token-auth-file", "tokens", type=_FILE, help='Bearer tokens: token,user,uid,"group1,group2".'
    ),
    click.option(
        "--service-account-signing-key-file",
        "accounts_key",
        type=_FILE,
        help="Key that signs service accounts' tokens (ECDSA).",
    ),
    click.option(
        "--anonymous-auth",
        "anonymous",
        type=bool,
        default=True,
        help="Accept requests without credentials, as system:anonymous.",
    ),
    click.option(
        "--authorization-mode",
        "modes",
        default="AlwaysAllow",
        callback=_modes,
        metavar="MODE,...",
        help=f"Authorizers, asked in order: {', '.join(MODES)}.",
    ),
    click.option(
        "--client-certificates",
        "clients",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="Write a kubeconfig for each NAME.crt and NAME.key in this folder.",
    ),
)


def access_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, which gets them as the argument `access`.

    Raises: click.UsageError for options that exclude each other.
    """

    @functools.wraps(command)
    def wrapped(*arguments: Any, **given: Any) -> Any:
        access = AccessOptions(**{each.name: given.pop(each.name) for each in fields(AccessOptions)})
        if (access.certificate is None) != (access.key is None):
            raise click.UsageError("--tls-cert-file and --tls-private-key-file go together")
        if access.client_ca is not None and access.certificate is None:
            raise click.UsageError("--client-ca-file needs --tls-cert-file: certificates come with TLS")
        return command(*arguments, access=access, **given)

    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped
