"""The package as a person installs it: built from the sources, in an empty environment, used from elsewhere.

Needs a package index, as `make setup` does.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from email.parser import Parser
from pathlib import Path

import pytest

from nominee.localcluster.supervisor.clock import wait_until
from tests.support.patience import PATIENCE_SECONDS

REPOSITORY = Path(__file__).parents[2]
INSTALL_SECONDS_MAX = 600.0
PACKAGES = (
    "machinery",
    "apiserver",
    "scheduler",
    "kubelet",
    "autoscaler",
    "controllers",
    "simulation",
    "scenarios",
    "localcluster",
    "lab",
    "testing",
)
EXAMPLE_LIBRARIES = ("pytest", "kubernetes", "lightkube", "kr8s", "kopf")
PROJECT = Path(__file__).parent / "user_project"
GENERATED = ("k8s", "nominee_api", "clusterautoscaler", "gnostic", "nominee_cel")
# What generated code must run with; the rest of the dependencies is as new as can be.
OLDEST = ("protobuf", "grpcio", "googleapis-common-protos", "click")
POD = """
apiVersion: v1
kind: Pod
metadata: {name: hello, namespace: default}
spec:
  containers: [{name: c, image: pause, resources: {requests: {cpu: "1"}}}]
"""
IMPORT_GENERATED = """
import importlib, pathlib, sys, warnings
warnings.simplefilter("error")
for package in sys.argv[1:]:
    (root,) = importlib.import_module(package).__path__
    for path in pathlib.Path(root).rglob("*_pb2*.py"):
        importlib.import_module(".".join((package, *path.relative_to(root).with_suffix("").parts)))
        print(path.stem)
"""


def run(*command: str | Path, directory: Path, environment: dict[str, str] | None = None) -> str:
    """Run a command to its end and return what it printed."""
    done = subprocess.run(
        [*map(str, command)],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


@dataclass(frozen=True, slots=True)
class Built:
    """A source distribution, and the wheel that was built from it in an environment of its own."""

    sdist: Path
    wheel: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    home = tmp_path_factory.mktemp("package")
    sources, dist = home / "sources", home / "dist"
    not_sources = shutil.ignore_patterns(".*", "build", "*.egg-info", "__pycache__", "tests")
    shutil.copytree(REPOSITORY, sources, ignore=not_sources, symlinks=True)
    make = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
    run(sys.executable, "-c", make, dist, directory=sources)
    (sdist,) = dist.glob("*.tar.gz")
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", dist, sdist, directory=home)
    (wheel,) = dist.glob("*.whl")
    return Built(sdist, wheel)


@pytest.mark.slow
def test_what_is_in_the_package(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        names = set(wheel.namelist())
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        described = Parser().parsestr(wheel.read(metadata).decode())
    protos = {path.relative_to(REPOSITORY / "proto") for path in (REPOSITORY / "proto").rglob("*.proto")}
    compiled = {
        f"nominee/pb/{str(path.parent).replace('k8s.io', 'k8s/io')}/{path.stem}_pb2.py" for path in protos
    }
    assert compiled <= names
    assert "nominee/py.typed" in names
    # `nominee/` has links to the packages, which rglob does not follow.
    sources = {
        f"{prefix}{path.relative_to(REPOSITORY)}"
        for prefix, package in (("", "nominee"), *(("nominee/", package) for package in PACKAGES))
        for path in (REPOSITORY / package).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert sources <= names
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"nominee"}
    assert described["License-Expression"] == "Apache-2.0"
    assert described["Requires-Python"] == ">=3.11"
    assert any(name.endswith("licenses/LICENSE") for name in names)
    with tarfile.open(built.sdist) as sdist:
        packed = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"LICENSE", "setup.py", "proto/compile.py", *(f"proto/{path}" for path in protos)} <= packed


class Installed:
    """The package in an environment that has nothing else, and commands of it run in an empty folder."""

    def __init__(self, home: Path, wheel: Path) -> None:
        self.home, self.venv, self.folder = home, home / "venv", home / "elsewhere"
        self.directory = home / "cluster"
        self.folder.mkdir()
        # What a shell has, and nothing of this environment.
        self._environment = {
            **{name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ},
            "PATH": f"{self.venv / 'bin'}:/usr/bin:/bin",
        }
        run(sys.executable, "-m", "venv", "--without-pip", self.venv, directory=home)
        self.install(str(wheel))

    def install(self, *requirements: str) -> None:
        pip = (
            sys.executable,
            "-m",
            "pip",
            "--python",
            self.venv / "bin" / "python",
            "install",
            "--quiet",
            "--no-compile",
        )
        run(*pip, *requirements, directory=self.folder)

    def site_packages(self) -> set[str]:
        """Return what the package itself has put into site-packages, apart from its dist-info."""
        list_files = (
            "import importlib.metadata as m; print(*(f.parts[0] for f in m.files('nominee')), sep='\\n')"
        )
        tops = set(self("python", "-P", "-c", list_files).splitlines()) - {".."}  # ..: bin/nominee
        return {top for top in tops if not top.endswith(".dist-info")}

    def __call__(self, *words: str | Path) -> str:
        return run(*words, directory=self.folder, environment=self._environment)

    def nominee(self, *words: str | Path) -> str:
        return self("nominee", *words, "--dir", self.directory)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, built: Built) -> Iterator[Installed]:
    made = Installed(tmp_path_factory.mktemp("installed"), built.wheel)
    yield made
    made.nominee("down", "--kill")


def oldest_dependencies() -> list[str]:
    """The requirements that generated code depends on, at the oldest versions that the package allows."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = []
    for requirement in project["dependencies"]:
        name, bound, rest = requirement.partition(">=")
        if name in OLDEST:
            assert bound
            found.append(f"{name}=={rest.partition(',')[0]}")
    assert len(found) == len(OLDEST)
    return found


@pytest.mark.slow
def test_an_installed_package_runs_a_cluster(installed: Installed) -> None:
    assert installed("nominee", "--version").startswith("nominee ")
    installed.nominee("up", "--detach", "--nodes", "1", "--timeout", f"{PATIENCE_SECONDS:g}")
    pod = installed.folder / "pod.yaml"
    pod.write_text(POD)
    assert installed.nominee("apply", "-f", pod) == "pod/hello created\n"

    def phase() -> str:
        return str(json.loads(installed.nominee("get", "pod", "hello", "-o", "json"))["status"]["phase"])

    assert wait_until(lambda: phase() == "Running", PATIENCE_SECONDS, poll_seconds=0.2)
    assert "default/hello" in installed.nominee("explain", "pod", "default/hello")
    names = {"etcd", "apiserver", "scheduler", "controllers", "cloud", "kubelet", "autoscaler"}

    def healthy() -> set[str]:
        """The components that answered the command within its second, and were never restarted."""
        found = json.loads(installed.nominee("status", "-o", "json"))["components"]
        return {c["component"] for c in found if c["healthy"] and not c["restarts"]}

    assert wait_until(lambda: healthy() == names, PATIENCE_SECONDS)
    installed.nominee("down")
    assert installed.site_packages() == {"nominee"}
    shutil.copytree(PROJECT, installed.folder, dirs_exist_ok=True)
    assert installed("python", "check.py", installed.home / "check").splitlines() == ["node-0 node-0"]


@pytest.mark.slow
def test_it_runs_with_the_oldest_dependencies_that_it_allows(installed: Installed) -> None:
    """The compiler of the wheel is the one of the oldest runtime, so that the whole range works."""
    installed.install(*oldest_dependencies())
    generated = [f"nominee.pb.{package}" for package in GENERATED]
    imported = installed("python", "-P", "-c", IMPORT_GENERATED, *generated).split()
    assert {"generated_pb2", "api_pb2", "api_pb2_grpc", "externalgrpc_pb2_grpc"} <= set(imported)
    installed.nominee("up", "--detach", "--components", "etcd,apiserver,scheduler")
    assert "default" in installed.nominee("get", "namespaces", "-o", "name")


@pytest.mark.slow
def test_the_examples_run_from_the_wheel(installed: Installed) -> None:
    try:
        installed.install(*EXAMPLE_LIBRARIES)
    except AssertionError as error:
        pytest.skip(f"the libraries of the examples cannot be installed: {error}")
    shutil.copytree(REPOSITORY / "examples", installed.folder / "examples")
    # The fixtures come by the entry point.
    output = installed("python", "-m", "pytest", "-v", "examples")
    assert "4 passed" in output
