"""Compile the .proto files into the package `nominee.pb`: `python proto/compile.py TARGET`.

For `make setup`, which has it in build/pb, and for the wheel, which contains it. Needs grpcio-tools. The
modules run with the protobuf that the compiler belongs to and with newer ones, up to the next major version.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).resolve().parent
# Folders of messages without services.
WITHOUT_SERVICES = frozenset({"k8s.io", "gnostic", "nominee_cel"})
PACKAGE = "nominee.pb"


def compile_protos(target: Path) -> None:
    """Write the modules, their stubs for type checkers, and the gRPC services into a folder."""
    protos = sorted(path.relative_to(SOURCES) for path in SOURCES.rglob("*.proto"))
    services = [path for path in protos if path.parts[0] not in WITHOUT_SERVICES]
    target.mkdir(parents=True, exist_ok=True)
    _protoc([f"--python_out={target}", f"--pyi_out={target}"], protos)
    _protoc([f"--grpc_python_out={target}"], services)
    _move_below(PACKAGE, {path.parts[0].partition(".")[0] for path in protos}, target)
    (target / "__init__.py").write_text(
        '"""The generated messages and services of proto/."""\n', encoding="utf-8"
    )


def _move_below(package: str, roots: set[str], target: Path) -> None:
    """Let the modules import each other below a package: protoc derives their names from the files'
    paths alone.
    """
    names = "|".join(sorted(roots))
    imported = re.compile(rf"^from ({names})\b", re.MULTILINE)
    module = re.compile(rf"(BuildTopDescriptorsAndMessages\(DESCRIPTOR, ')({names})\b")
    for path in target.rglob("*.py*"):
        text = path.read_text(encoding="utf-8")
        text = imported.sub(rf"from {package}.\1", text)
        path.write_text(module.sub(rf"\1{package}.\2", text), encoding="utf-8")


def _protoc(options: list[str], protos: list[Path]) -> None:
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{SOURCES}", *options]
    subprocess.run([*command, *map(str, protos)], cwd=SOURCES, check=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python proto/compile.py TARGET")
    compile_protos(Path(sys.argv[1]).resolve())
