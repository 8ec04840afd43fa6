"""Compile the .proto files into Python modules: `python proto/compile.py TARGET`.

For `make setup`, which has them in build/pb, and for the wheel, which contains them. Needs grpcio-tools. The
modules run with the protobuf that the compiler belongs to and with newer ones, up to the next major version.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).resolve().parent
# Folders of messages without services.
WITHOUT_SERVICES = frozenset({"k8s.io", "gnostic", "nominee_cel"})


def compile_protos(target: Path) -> None:
    """Write the modules, their stubs for type checkers, and the gRPC services into a folder."""
    protos = sorted(path.relative_to(SOURCES) for path in SOURCES.rglob("*.proto"))
    services = [path for path in protos if path.parts[0] not in WITHOUT_SERVICES]
    target.mkdir(parents=True, exist_ok=True)
    _protoc([f"--python_out={target}", f"--pyi_out={target}"], protos)
    _protoc([f"--grpc_python_out={target}"], services)
    for package in {path.parts[0].partition(".")[0] for path in protos}:
        (target / package / "py.typed").touch()


def _protoc(options: list[str], protos: list[Path]) -> None:
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{SOURCES}", *options]
    subprocess.run([*command, *map(str, protos)], cwd=SOURCES, check=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python proto/compile.py TARGET")
    compile_protos(Path(sys.argv[1]).resolve())
