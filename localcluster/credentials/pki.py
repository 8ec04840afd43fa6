"""A cluster's certificates and tokens in D/pki, which `nominee up` creates.

    ca.crt, ca.key                    the cluster's own authority
    apiserver.crt, apiserver.key      what the API server shows
    cloud.crt, cloud.key              what the built-in cloud shows
    etcd/                             an authority of its own, since its clients may read everything
    serving.token                     the token for processes' serving ports (machinery.process.serving_token)
    sa.key                            the key that signs service accounts' tokens
    clients/NAME.crt, NAME.key        client certificates of components, with upstream's identities
    clients/NAME.token                bearer tokens, which Nominee's processes use over gRPC
    tokens.csv                        the users of these tokens (kube-apiserver's --token-auth-file)

Existing files are kept, so that credentials stay valid after `nominee down`. A certificate that expires soon
is issued again. Only the owner may read keys and tokens (0600, in directories of 0700). With ECDSA P-256 all
of it takes some 20 ms.
"""

from __future__ import annotations

import csv
import datetime
import io
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nominee.localcluster.credentials.authority import (
    Authority,
    Identity,
    host_names,
    key_pem,
    new_key,
    write,
)
from nominee.localcluster.credentials.etcd_pki import EtcdPki

_TOKEN_BYTES = 32
SERVING_NAMES = (
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "localhost",
)
SERVING_ADDRESSES = ("127.0.0.1", "::1", "10.96.0.1")
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
CLOUD = Identity("system:cloud-controller-manager")


@dataclass(frozen=True, slots=True)
class Pki:
    """The paths below D/pki."""

    path: Path

    @property
    def ca(self) -> Path:
        return self.path / "ca.crt"

    @property
    def ca_key(self) -> Path:
        return self.path / "ca.key"

    @property
    def serving(self) -> tuple[Path, Path]:
        return self.path / "apiserver.crt", self.path / "apiserver.key"

    @property
    def cloud(self) -> tuple[Path, Path]:
        return self.path / "cloud.crt", self.path / "cloud.key"

    @property
    def etcd(self) -> EtcdPki:
        return EtcdPki(self.path / "etcd")

    @property
    def accounts_key(self) -> Path:
        return self.path / "sa.key"

    @property
    def tokens(self) -> Path:
        return self.path / "tokens.csv"

    @property
    def clients(self) -> Path:
        return self.path / "clients"

    def cloud_arguments(self) -> list[str]:
        """Return the arguments of a cloud that uses these files."""
        certificate, key = self.cloud
        return [
            *("--tls-cert-file", str(certificate), "--tls-private-key-file", str(key)),
            *("--client-ca-file", str(self.ca)),
        ]

    def arguments(self, authorization_mode: str) -> list[str]:
        """Return the arguments of an API server that uses these files."""
        certificate, key = self.serving
        return [
            *("--tls-cert-file", str(certificate), "--tls-private-key-file", str(key)),
            *("--client-ca-file", str(self.ca), "--token-auth-file", str(self.tokens)),
            *("--service-account-signing-key-file", str(self.accounts_key)),
            *("--client-certificates", str(self.clients)),
            *("--authorization-mode", authorization_mode),
        ]

    @property
    def signing_arguments(self) -> list[str]:
        """Return the arguments of controllers that sign certificates with this authority."""
        return [
            *("--cluster-signing-cert-file", str(self.ca)),
            *("--cluster-signing-key-file", str(self.ca_key)),
        ]

    def ensure(
        self,
        certificates: Mapping[str, Identity],
        tokens: Mapping[str, Identity],
        *,
        now: datetime.datetime,
        names: Iterable[str] = (),
    ) -> None:
        """Create the files that are missing; `names` are further names or addresses of the API server.

        Raises:
            OSError: a file cannot be read or written.
        """
        for directory in (self.path, self.clients):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        authority = Authority.ensure(self.ca, self.ca_key, now, name="kubernetes")
        served = (*SERVING_NAMES, *host_names(), *names, *SERVING_ADDRESSES)
        authority.ensure_serving(*self.serving, Identity("kube-apiserver"), served)
        authority.ensure_serving(*self.cloud, CLOUD, LOOPBACK_NAMES)
        self.etcd.ensure(now)
        if not self.accounts_key.exists():
            write(self.accounts_key, key_pem(new_key()), secret=True)
        for name, identity in certificates.items():
            authority.ensure_client(self.clients / f"{name}.crt", self.clients / f"{name}.key", identity)
        self._write_tokens({name: self._row(name, identity) for name, identity in tokens.items()})

    def reassign(self, tokens: Mapping[str, Identity]) -> None:
        """Set the users of some tokens, as when a kubelet gets other nodes; the tokens stay the same.

        Raises:
            OSError: a file cannot be read or written.
        """
        with self.tokens.open(encoding="utf-8", newline="") as file:
            rows = {row[2]: row for row in csv.reader(file) if row}
        self._write_tokens(rows | {name: self._row(name, identity) for name, identity in tokens.items()})

    def _row(self, name: str, identity: Identity) -> list[str]:
        return [self._token(name), identity.user, name, ",".join(identity.groups)]

    def _write_tokens(self, rows: Mapping[str, Sequence[str]]) -> None:
        table = io.StringIO()
        csv.writer(table, lineterminator="\n").writerows(rows.values())
        write(self.tokens, table.getvalue().encode(), secret=True)

    def _token(self, name: str) -> str:
        path = self.clients / f"{name}.token"
        if not path.exists():
            write(path, secrets.token_urlsafe(_TOKEN_BYTES).encode(), secret=True)
        return path.read_text(encoding="ascii").strip()

    def client(self, identity: Identity, *, now: datetime.datetime) -> tuple[bytes, bytes]:
        """Return a new certificate and key (PEM) for any user, without storing them.

        Raises:
            OSError: the authority does not exist.
        """
        authority = Authority.load(self.ca, self.ca_key, now)
        return authority.client(identity)
