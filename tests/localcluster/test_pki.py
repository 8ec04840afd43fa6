"""A cluster's credentials: created once, kept, and readable only by their owner."""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from nominee.localcluster.credentials import identities
from nominee.localcluster.credentials.authority import Identity
from nominee.localcluster.credentials.pki import Pki
from nominee.localcluster.plan import UpOptions, build
from nominee.localcluster.supervisor.model.spec import ProcessSpec

NOW = datetime(2026, 5, 1, tzinfo=UTC)
SOME = {"admin": Identity("kubernetes-admin", ("system:masters",))}


def contents(pki: Pki) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in pki.path.rglob("*") if path.is_file()}


def subject(path: Path) -> tuple[object, list[object]]:
    made = x509.load_pem_x509_certificate(path.read_bytes()).subject
    common = made.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
    return common, [each.value for each in made.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]


def test_what_is_made(tmp_path: Path) -> None:
    pki = Pki(tmp_path / "pki")
    pki.ensure(SOME, SOME, now=NOW)
    assert subject(pki.clients / "admin.crt") == ("kubernetes-admin", ["system:masters"])
    serving = x509.load_pem_x509_certificate(pki.serving[0].read_bytes())
    serving.verify_directly_issued_by(x509.load_pem_x509_certificate(pki.ca.read_bytes()))
    names = serving.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {"kubernetes", "kubernetes.default.svc", "localhost"} <= set(
        names.get_values_for_type(x509.DNSName)
    )
    token = (pki.clients / "admin.token").read_text()
    assert pki.tokens.read_text() == f"{token},kubernetes-admin,admin,system:masters\n"
    for path in pki.path.rglob("*"):
        mode = stat.S_IMODE(path.stat().st_mode)
        # Under a strict umask certificates are for the owner, too.
        modes = {0o700} if path.is_dir() else {0o644, 0o600} if path.suffix == ".crt" else {0o600}
        assert mode in modes, path


def test_what_is_there_is_kept(tmp_path: Path) -> None:
    pki = Pki(tmp_path / "pki")
    pki.ensure(SOME, SOME, now=NOW)
    before = contents(pki)
    pki.ensure(SOME, SOME, now=NOW + timedelta(days=30))
    assert contents(pki) == before
    # Other nodes, the same token.
    pki.ensure(SOME, {"admin": Identity("jane")}, now=NOW)
    changed = {path for path, data in contents(pki).items() if before[path] != data}
    assert changed == {str(pki.tokens)}


def test_a_token_may_be_given_to_another_user(tmp_path: Path) -> None:
    pki = Pki(tmp_path / "pki")
    pki.ensure({}, {"a": Identity("x"), "b": Identity("y", ("g", "h"))}, now=NOW)
    before = pki.tokens.read_text()
    pki.reassign({"a": Identity("x", ("g",))})
    first, second = before.splitlines()
    assert pki.tokens.read_text().splitlines() == [f"{first}g", second]


def test_half_an_authority_is_not_replaced(tmp_path: Path) -> None:
    pki = Pki(tmp_path / "pki")
    pki.ensure(SOME, SOME, now=NOW)
    before = pki.ca.read_bytes()
    (pki.path / "ca.key").unlink()
    with pytest.raises(FileNotFoundError):
        pki.ensure(SOME, SOME, now=NOW)
    assert pki.ca.read_bytes() == before


def test_a_certificate_near_its_end_is_made_again(tmp_path: Path) -> None:
    pki = Pki(tmp_path / "pki")
    pki.ensure(SOME, SOME, now=NOW)
    before = contents(pki)
    pki.ensure(SOME, SOME, now=NOW + timedelta(days=364))
    changed = {Path(path).name for path, data in contents(pki).items() if before[path] != data}
    etcds = ("server", "peer", "apiserver-etcd-client", "healthcheck-client")
    names = ("apiserver", "admin", "cloud", *etcds)
    assert changed == {f"{name}{suffix}" for name in names for suffix in (".crt", ".key")}


def test_etcds_authority_is_another(tmp_path: Path) -> None:
    """Or each user of the cluster with a certificate could read and write everything in etcd."""
    pki = Pki(tmp_path / "pki")
    pki.ensure(SOME, SOME, now=NOW)
    authority = x509.load_pem_x509_certificate(pki.etcd.ca.read_bytes())
    own = x509.load_pem_x509_certificate(pki.etcd.pair("apiserver-etcd-client")[0].read_bytes())
    own.verify_directly_issued_by(authority)
    admin = x509.load_pem_x509_certificate((pki.clients / "admin.crt").read_bytes())
    with pytest.raises(ValueError, match="does not match"):
        admin.verify_directly_issued_by(authority)


def test_a_further_name_of_the_server(tmp_path: Path) -> None:
    pki = Pki(tmp_path / "pki")
    pki.ensure({}, {}, now=NOW)
    pki.ensure({}, {}, now=NOW, names=["10.1.2.3", "example.test"])
    made = x509.load_pem_x509_certificate(pki.serving[0].read_bytes())
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "example.test" in names.get_values_for_type(x509.DNSName)


def test_what_an_api_server_is_started_with(tmp_path: Path) -> None:
    def arguments(**options: Any) -> str:
        plan = build(UpOptions(directory=tmp_path, components=("etcd", "apiserver"), **options))
        assert plan.secure is options.get("secure", True)
        return " ".join(plan.spec.processes[1].argv)

    assert "--authorization-mode Node,RBAC" in arguments()
    assert f"--client-ca-file {tmp_path}/pki/ca.crt" in arguments()
    assert "--authorization-mode AlwaysDeny" in arguments(authorization_mode="AlwaysDeny")
    assert "pki" not in arguments(secure=False)
    assert "--authorization-mode" not in arguments(secure=False)
    assert f"--etcd-cafile {tmp_path}/pki/etcd/ca.crt" in arguments()


def process(name: str, *arguments: str) -> ProcessSpec:
    return ProcessSpec(name=name, component=name.partition("-")[0], argv=arguments, stop_stage=0)


def test_whose_nodes_are_whose(tmp_path: Path) -> None:
    groups = tmp_path / "groups.yaml"
    groups.write_text("nodeGroups:\n- {name: small}\n- {name: big}\n")
    found = identities.tokens(
        [
            process("scheduler"),
            process("cloud", "--node-groups", str(groups)),
            process("kubelet-0", "--nodes", "3", "--first-node", "0", "--cloud"),
            process("kubelet-2", "--nodes", "0"),
            process("kubelet-1", "--nodes", "2", "--first-node", "3", "--node-name-prefix=x-"),
        ]
    )
    server = process("apiserver", "--rest-address", "10.0.0.1:6443", "--grpc-address=0.0.0.0:0")
    assert identities.serving_names([server]) == ["10.0.0.1"]
    assert found["scheduler"] == Identity("system:kube-scheduler")
    assert found["kubelet-0"] == Identity(
        "system:node:kubelet-0",
        ("system:nodes", "nominee:nodes:node-0..2", "nominee:nodes:small-*", "nominee:nodes:big-*"),
    )
    assert found["kubelet-1"].groups == ("system:nodes", "nominee:nodes:x-3..4")
    assert found["kubelet-2"].groups == ("system:nodes", "nominee:nodes:")
