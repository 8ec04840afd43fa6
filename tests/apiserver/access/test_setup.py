"""Access as options make it."""

from __future__ import annotations

from pathlib import Path

import pytest

from nominee.apiserver.access.authentication import Credentials
from nominee.apiserver.access.options import AccessOptions
from nominee.apiserver.objects.attributes import Attributes
from nominee.apiserver.objects.user import ADMIN, User
from nominee.apiserver.process import access_setup as setup
from nominee.machinery.api.errors import StatusError
from nominee.machinery.process.component import BadConfiguration
from nominee.machinery.runtime.clock import FakeClock
from tests.apiserver.access.fakes import Objects

TOKEN = Credentials(authorization="Bearer t")


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    path = tmp_path / "tokens.csv"
    path.write_text("t,jane,1\n")
    return path


def made(options: AccessOptions) -> setup.AccessSetup:
    return setup.make(options, Objects(), FakeClock())  # type: ignore[arg-type]  # a fake of the watch cache


def test_plain_ports_are_open() -> None:
    door = made(AccessOptions())
    assert door.access.open
    assert door.admission == ()
    assert door.access.authenticate(Credentials(authorization="Bearer unknown")) is ADMIN


def test_with_tokens_everybody_needs_one_where_all_is_allowed(tokens: Path) -> None:
    access = made(AccessOptions(tokens=tokens)).access
    assert access.authenticate(TOKEN).name == "jane"
    with pytest.raises(StatusError, match="Unauthorized"):
        access.authenticate(Credentials())


def test_modes(tokens: Path) -> None:
    door = made(AccessOptions(tokens=tokens, modes=("Node", "RBAC")))
    assert [plugin.name for plugin in door.admission] == [
        "NodeRestriction",
        "CertificateApproval",
        "CertificateSigning",
        "Escalation",
    ]
    assert door.access.authenticate(Credentials()).name == "system:anonymous"
    node = User("system:node:n1", ("system:nodes",))
    own = Attributes("get", "nodes", name="n1")
    door.access.authorize(node, own)
    with pytest.raises(StatusError, match="is forbidden"):
        made(AccessOptions(tokens=tokens, modes=("RBAC",))).access.authorize(node, own)
    with pytest.raises(StatusError, match="Everything is forbidden"):
        made(AccessOptions(modes=("AlwaysDeny",))).access.authorize(node, own)
    made(AccessOptions(modes=("AlwaysDeny", "AlwaysAllow"))).access.authorize(node, own)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("one,two\n")
    with pytest.raises(BadConfiguration, match="at least 3 columns"):
        made(AccessOptions(tokens=bad))
    with pytest.raises(BadConfiguration, match="TLS cannot be set up"):
        setup.tls_context(AccessOptions(certificate=bad, key=bad))
