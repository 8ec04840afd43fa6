"""Etcd's certificates in D/pki/etcd, with kubeadm's file names.

ca.crt, ca.key                    etcd's own authority
server.crt, server.key            what etcd shows to clients
peer.crt, peer.key                what members show to each other
apiserver-etcd-client.crt, .key   what the API server shows
healthcheck-client.crt, .key      what Nominee's health checks show
"""

from __future__ import annotations

import datetime
import ssl
from dataclasses import dataclass
from pathlib import Path

from nominee.localcluster.credentials.authority import Authority, Identity

_NAMES = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class EtcdPki:
    """The paths below D/pki/etcd."""

    path: Path

    @property
    def ca(self) -> Path:
        return self.path / "ca.crt"

    def pair(self, name: str) -> tuple[Path, Path]:
        """Return a certificate and its key: `server`, `peer`, ..."""
        return self.path / f"{name}.crt", self.path / f"{name}.key"

    @property
    def client_arguments(self) -> list[str]:
        """Return the arguments of an API server that uses this etcd."""
        certificate, key = self.pair("apiserver-etcd-client")
        return [
            *("--etcd-cafile", str(self.ca)),
            *("--etcd-certfile", str(certificate), "--etcd-keyfile", str(key)),
        ]

    def health_check_context(self) -> ssl.SSLContext:
        """Return the TLS context of a health check: it trusts the authority, and shows its certificate."""
        context = ssl.create_default_context(cafile=str(self.ca))
        context.load_cert_chain(*self.pair("healthcheck-client"))
        return context

    @property
    def server_arguments(self) -> list[str]:
        """Return the arguments of etcd itself."""
        arguments = []
        for prefix, name in (("", "server"), ("peer-", "peer")):
            certificate, key = self.pair(name)
            arguments += [
                f"--{prefix}cert-file={certificate}",
                f"--{prefix}key-file={key}",
                f"--{prefix}trusted-ca-file={self.ca}",
                f"--{prefix}client-cert-auth",
            ]
        return arguments

    def ensure(self, now: datetime.datetime) -> None:
        """Create the files that are missing.

        Raises:
            OSError: a file cannot be read or written.
        """
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        authority = Authority.ensure(self.ca, self.path / "ca.key", now, name="etcd-ca")
        # Etcd's gateway connects to etcd with the server's certificate.
        authority.ensure_serving(*self.pair("server"), Identity("etcd"), _NAMES, client=True)
        authority.ensure_serving(*self.pair("peer"), Identity("etcd"), _NAMES, client=True)
        for name in ("apiserver-etcd-client", "healthcheck-client"):
            authority.ensure_client(*self.pair(name), Identity(f"kube-{name}"))
