"""`nominee kubeconfig --user NAME`: a kubeconfig with a new certificate for a user."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from pathlib import Path

import click

from nominee.commands.common import directory_option
from nominee.localcluster.credentials import identities
from nominee.localcluster.credentials.authority import Identity
from nominee.localcluster.credentials.pki import Pki
from nominee.localcluster.plan import directory_hint
from nominee.machinery.process.run_files import RunFile
from nominee.machinery.runtime.clock import SystemClock


@click.command()
@directory_option
@click.option("--user", default="", help="The user's name.")
@click.option("--group", "groups", multiple=True, help="A group of the user. Repeatable.")
@click.option("--node", default="", help="Make a kubelet's certificate for this node, instead of a user's.")
def kubeconfig(directory: Path, user: str, groups: tuple[str, ...], node: str) -> None:
    """Print a kubeconfig for another user.

    The command issues a certificate for the user (or, with --node, for a kubelet) and does not store it.
    """
    if bool(user) == bool(node):
        raise click.UsageError("give --user NAME or --node NAME")
    identity = identities.of_node(node) if node else Identity(user, groups)
    hint = directory_hint(directory)
    server = RunFile.read(directory, "apiserver")
    if server is None:
        raise click.ClickException(f"no API server runs in {directory}; start one with `nominee up{hint}`")
    if not server.document.get("ca"):
        raise click.ClickException("this API server authenticates no client (--insecure): use D/kubeconfig")
    pki = Pki(directory / "pki")
    now = datetime.fromtimestamp(SystemClock().now(), UTC)
    try:
        certificate, key = pki.client(identity, now=now)
        authority = pki.ca.read_bytes()
    except (OSError, ValueError) as error:
        raise click.ClickException(f"the authority in {pki.path} cannot be used: {error}") from None
    cluster = {
        "server": f"https://{server.document['rest']}",
        "certificate-authority-data": _data(authority),
    }
    shown = {"client-certificate-data": _data(certificate), "client-key-data": _data(key)}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "nominee", "cluster": cluster}],
        "users": [{"name": identity.user, "user": shown}],
        "contexts": [{"name": "nominee", "context": {"cluster": "nominee", "user": identity.user}}],
        "current-context": "nominee",
    }
    click.echo(json.dumps(document, indent=2))


def _data(pem: bytes) -> str:
    return base64.b64encode(pem).decode("ascii")
