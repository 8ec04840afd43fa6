"""A cluster of real processes for a test, from its start until the end of a `with` block.

All calls block, with a limit, and none loads gRPC: the components are child processes, objects are read and
written over REST, and a child process reads etcd (`history`, `verify`).
"""

from __future__ import annotations

import copy
import json
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from http import HTTPStatus
from math import ceil
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypedDict

from nominee.localcluster import own_cluster
from nominee.localcluster.cluster import ClusterError, ProcessState, RunningCluster
from nominee.localcluster.supervisor.clock import monotonic, wait_until
from nominee.localcluster.supervisor.directory import StateDirectory
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError, is_not_found
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.process import child
from nominee.machinery.wire.files.manifest_objects import ManifestError, read_objects
from nominee.machinery.wire.values.scalars import Json
from nominee.testing import history as object_history
from nominee.testing.clients import Library, connect
from nominee.testing.conditions import Condition, condition_on
from nominee.testing.history import ObjectRevision
from nominee.testing.references import Reference, kind_named, place_of, ref
from nominee.testing.rest import APPLY, PATCHES, Document, Query, RestApi, path_of
from nominee.testing.up_words import PluginClass, words_of

WAIT_SECONDS: Final = 30.0
"""The limit of a wait without one."""
_NAMESPACE_SECONDS_MAX: Final = 30.0
_DOWN_SECONDS_MAX: Final = 30.0
_UP_SECONDS_MAX: Final = 3600.0
_RETRY_SECONDS: Final = 0.1
_BROKEN: Final = 1
"""The exit status of `nominee verify` if an invariant is violated."""
FIELD_MANAGER: Final = "nominee-testing"


class ClusterOptions(TypedDict, total=False):
    """The keyword arguments of `Cluster`."""

    nodes: int
    emulated_version: str | Mapping[str, str]
    feature_gates: Mapping[str, Mapping[str, bool]] | None
    scheduler_config: Path | str | Document | None
    plugins: Sequence[str | PluginClass]
    options: Sequence[str]
    directory: Path | str | None
    namespace: str
    detach: bool


Objects = str | Path | Document | Sequence[Document]
"""Manifests: a file, or a text with several lines or in JSON; or objects."""


class BrokenInvariantsError(AssertionError):
    """Invariants that do not hold; `report` is that of `nominee verify -o json`."""

    def __init__(self, report: Document) -> None:
        self.report = report
        self.violations: Sequence[Document] = [
            violation for result in report["invariants"] for violation in result["violations"]
        ]
        super().__init__("\n".join(f"{each['invariant']}: {each['message']}" for each in self.violations))


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment of a cluster: `logs` and `history` return the lines and writes after it."""

    log_bytes: Mapping[str, int]
    revision: int


class Cluster:
    """A cluster: `with Cluster(nodes=3) as cluster: ...`.

    Args:
        nodes: how many nodes the kubelet emulates.
        emulated_version: of all components, or by component.
        feature_gates: true or false by component and gate; the component "" is all of them.
        scheduler_config: a KubeSchedulerConfiguration, or the path of one.
        plugins: plugins for the scheduler from outside: classes, or texts `module:Class`. Their modules must
            be found in the working directory, or be installed. Without a configuration all are enabled.
        options: more words of the command line of `nominee up`, as `("--replicas", "scheduler=2")`.
        directory: the state directory; by default one that is removed at the end.
        namespace: that of objects that are named without one.
        detach: let the cluster outlive this process, which `keep` needs.

    Raises:
        ClusterStartError: the cluster does not start (at the beginning of the block).
        ClusterError: the cluster, or one of its processes, does not answer (every method).
        StatusError: the API server rejects a request (methods that read or write objects).
    """

    def __init__(
        self,
        nodes: int = 3,
        *,
        emulated_version: str | Mapping[str, str] = "",
        feature_gates: Mapping[str, Mapping[str, bool]] | None = None,
        scheduler_config: Path | str | Document | None = None,
        plugins: Sequence[str | PluginClass] = (),
        options: Sequence[str] = (),
        directory: Path | str | None = None,
        namespace: str = "default",
        detach: bool = False,
    ) -> None:
        self._temporary = directory is None
        self._directory = Path(directory or tempfile.mkdtemp(prefix="nominee-")).absolute()
        self._words = [
            *words_of(
                nodes, emulated_version, feature_gates or {}, scheduler_config, plugins, self._directory
            ),
            *options,
        ]
        self._namespace, self._detach = namespace, detach
        self._attached = self._kept = False
        self._processes, self._api = RunningCluster(self._directory), RestApi(self._directory)
        self._stack = ExitStack()

    @classmethod
    def attach(cls, directory: Path | str, *, namespace: str = "default") -> Self:
        """Return a cluster that runs already, as `nominee up --detach` started it; it is not stopped."""
        found = cls(directory=directory, namespace=namespace)
        found._attached = True
        return found

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.callback(self._remove)
            if self._attached:
                self._processes.wait_until_ready()
            elif self._detach:
                stack.callback(self._down)
                self._up()
            else:
                stack.enter_context(own_cluster.cluster(self._directory, self._words, components=""))
            stack.callback(self._api.close)
            self._await_service_account()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    def _up(self) -> None:
        words = ("up", "--detach", "--no-remember", "--dir", str(self._directory), *self._words)
        try:
            command = [sys.executable, "-P", "-m", object_history.COMMAND, *words]
            object_history.run(command, seconds_max=_UP_SECONDS_MAX)
        except ClusterError as error:
            raise own_cluster.ClusterStartError(str(error)) from None

    def _down(self) -> None:
        if self._kept:
            return
        with suppress(ClusterError):
            object_history.run(child.command(object_history.COMMAND, "down", "--dir", str(self._directory)))

    def _remove(self) -> None:
        if self._temporary and not self._kept:
            shutil.rmtree(self._directory, ignore_errors=True)

    @property
    def outlives(self) -> bool:
        """Return whether it can outlive this process (`keep`)."""
        return self._detach

    def keep(self) -> str:
        """Let a detached cluster run on after the block; return how to reach and stop it.

        Raises:
            ValueError: the cluster is not detached: it ends with this process.
        """
        if not self._detach:
            raise ValueError("a cluster that is to be kept is made with detach=True")
        self._kept = True
        where = f"--dir {self.directory}"
        remove = f" && rm -r {self.directory}" if self._temporary else ""
        return f"export KUBECONFIG={self.kubeconfig}; nominee status {where}; nominee down {where}{remove}"

    @property
    def directory(self) -> Path:
        """Return the state directory (docs/configuration.md)."""
        return self._directory

    @property
    def kubeconfig(self) -> Path:
        """Return the administrator's kubeconfig."""
        return self._processes.kubeconfig

    @property
    def namespace(self) -> str:
        """Return the namespace of objects that are named without one."""
        return self._namespace

    def in_namespace(self, name: str) -> Self:
        """Return this cluster with another default namespace."""
        other = copy.copy(self)
        other._namespace = name
        return other

    def in_new_namespace(self, name: str) -> Self:
        """Create a namespace, and return this cluster with it as the default one."""
        self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        other = self.in_namespace(name)
        other._await_service_account()
        return other

    def delete_namespace(self) -> None:
        """Delete the default namespace, and its pods at once; return without waiting for the rest."""
        self.delete(ref("Namespace", self._namespace))
        with suppress(StatusError):
            path = path_of(kinds.POD, self._namespace)
            self._api.request("DELETE", path, query={"gracePeriodSeconds": 0})

    def _await_service_account(self) -> None:
        """Wait until pods may be created in the namespace: controllers make its service account."""
        if any(each.component == "controllers" and each.pid for each in self.processes()):
            account = ref("ServiceAccount", "default")
            self.wait(account, {"exists": True}, timeout=_NAMESPACE_SECONDS_MAX)

    def client(self, library: Library) -> object:
        """Return a client of the library `kubernetes`, `lightkube` or `kr8s`, which must be installed.

        Of `kubernetes` it is an ApiClient, for `CoreV1Api(...)`.

        Raises:
            ImportError: the library is not installed; the message has the command that installs it.
        """
        return connect(library, self.kubeconfig, self._namespace)

    # Objects

    def apply(self, objects: Objects) -> list[Document]:
        """Create or update objects by server-side apply, as `kubectl apply --server-side`; return them.

        Raises:
            ManifestError: a file or text has a mistake.
        """
        query = {"fieldManager": FIELD_MANAGER, "force": "true", "fieldValidation": "Strict"}
        return [
            self._api.request("PATCH", self._path(document, named=True), document, form=APPLY, query=query)
            for document in _documents(objects)
        ]

    def create(self, objects: Objects) -> list[Document]:
        """Create objects; return them. Raises: ManifestError: a file or text has a mistake."""
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict"}
        return [
            self._api.request("POST", self._path(document), document, query=query)
            for document in _documents(objects)
        ]

    def _path(self, document: Document, *, named: bool = False) -> str:
        """Return the path for writing a manifest. Raises: ValueError: it has no name, or no kind."""
        version, name = str(document.get("apiVersion", "")), str(document.get("kind", ""))
        kind = kinds.by_kind(version, name)
        if kind is None:
            raise ValueError(f'no matches for kind "{name}" in version "{version}"')
        metadata = document.get("metadata", {})
        if named and not metadata.get("name"):
            raise ValueError(f"a {name} without metadata.name can be created, but not applied")
        namespace = str(metadata.get("namespace") or self._namespace)
        return path_of(kind, namespace, str(metadata["name"]) if named else "")

    def get(self, reference: Reference) -> Document:
        """Return an object."""
        return self._api.request("GET", self._at(reference))

    def find(self, reference: Reference) -> Document | None:
        """Return an object, or None if there is no such object."""
        try:
            return self.get(reference)
        except StatusError as error:
            if not is_not_found(error):
                raise
            return None

    def list(self, kind: str, *, selector: str = "", namespace: str | None = None) -> list[Document]:
        """Return the objects of a kind with these labels; the namespace "" is all of them."""
        found = kind_named(kind)
        where = self._namespace if namespace is None else namespace
        query = {"labelSelector": selector} if selector else {}
        answer = self._api.request("GET", path_of(found, where), query=query)
        # The items of a list have neither.
        meta = {"apiVersion": found.api_version, "kind": found.kind}
        return [{**meta, **item} for item in answer["items"]]

    def delete(self, reference: Reference, *, grace_period: int | None = None) -> None:
        """Delete an object, and its dependents in the background."""
        query: dict[str, str | int] = {"propagationPolicy": "Background"}
        if grace_period is not None:
            query["gracePeriodSeconds"] = grace_period
        self._api.request("DELETE", self._at(reference), query=query)

    def patch(
        self, reference: Reference, patch: Json, *, type: str = "strategic", subresource: str = ""
    ) -> Document:
        """Patch an object or a subresource; `type` is `strategic`, `merge` or `json`. Return the object."""
        if type not in PATCHES:
            raise ValueError(f"{type!r} is no type of patches; they are {', '.join(PATCHES)}")
        path = self._at(reference, subresource)
        return self._api.request(
            "PATCH", path, patch, form=PATCHES[type], query={"fieldManager": FIELD_MANAGER}
        )

    def _at(self, reference: Reference, subresource: str = "") -> str:
        kind, namespace = place_of(reference, self._namespace)
        return path_of(kind, namespace, reference.name, subresource)

    def wait(
        self, reference: Reference, condition: str | Document, *, timeout: float = WAIT_SECONDS
    ) -> Document | None:
        """Wait until a condition holds; return the object, None if it does not exist.

        It is evaluated at each change, so that a state which lasts a moment is not missed, also if the API
        server is down meanwhile. The condition is an expression of CEL, `status.phase == 'Running'`, or the
        properties of an `object` condition of scenarios, `{"condition": "Ready=True"}`, `{"exists": False}`.

        Raises:
            TimeoutError: it does not hold in so many seconds; the message has the last observation.
            ValueError: the condition is wrong.
        """
        kind, namespace = place_of(reference, self._namespace)
        compiled = condition_on(condition, kind, reference.name, namespace)
        deadline, observed = monotonic() + timeout, ""
        while True:
            try:
                for document in self._states(kind, namespace, reference.name, deadline):
                    holds, observed = compiled.evaluate(document)
                    if holds:
                        return document
                    if monotonic() >= deadline:
                        break
            except ClusterError as error:
                observed = observed or str(error)
            except StatusError as error:
                # The watch's revision is compacted, or the API server is not ready.
                if error.code not in (HTTPStatus.GONE, HTTPStatus.SERVICE_UNAVAILABLE):
                    raise
            if monotonic() >= deadline:
                break
            wait_until(lambda: False, min(_RETRY_SECONDS, deadline - monotonic()))
        if kind is kinds.SECRET:
            observed = "the values of Secrets are hidden"
        raise TimeoutError(_unmet(reference, namespace, compiled, observed, timeout))

    def _states(self, kind: AnyKind, namespace: str, name: str, deadline: float) -> Iterator[Document | None]:
        """Yield the present state of an object and each later one, until the watch ends."""
        path, selection = path_of(kind, namespace), {"fieldSelector": f"metadata.name={name}"}
        listed = self._api.request("GET", path, query=selection, seconds=deadline - monotonic())
        meta = {"apiVersion": kind.api_version, "kind": kind.kind}
        items = listed["items"]
        yield {**meta, **items[0]} if items else None
        seconds = max(deadline - monotonic(), 0.01)
        query: Query = {
            **selection,
            "resourceVersion": listed["metadata"]["resourceVersion"],
            "timeoutSeconds": ceil(seconds),
        }
        for event in self._api.watch(path, query, seconds):
            yield None if event["type"] == "DELETED" else event["object"]

    # Processes

    def processes(self) -> Sequence[ProcessState]:
        """Return the state of every process."""
        return self._processes.processes()

    def start(self, component: str, *options: str) -> None:
        """Start a component that is down, with more options; return when it is ready."""
        self._processes.start(component, options)

    def stop(self, component: str, *, kill: bool = False) -> None:
        """Stop a component; with `kill` by SIGKILL. It stays down."""
        self._processes.stop(component, kill=kill)

    def restart(self, component: str, *options: str, kill: bool = False) -> None:
        """Stop a component, and start it with more options; return when it is ready."""
        self._processes.restart(component, options, kill=kill)

    def pause(self, component: str) -> None:
        """Stop a process by SIGSTOP."""
        self._processes.pause(component)

    def resume(self, component: str) -> None:
        """Continue a paused process."""
        self._processes.resume(component)

    def failpoint(self, component: str, point: str, action: str) -> None:
        """Arm a failpoint (docs/failpoints.md); the action `off` disarms it."""
        self._processes.arm_failpoint(component, point, action)

    def fault(
        self, component: str, action: str, *, to: str = "*", method: str = "*", kind: str = "*"
    ) -> None:
        """Set a fault of the calls of a component (docs/faults.md); the action `off` removes faults."""
        self._processes.set_fault(component, action, to=to, method=method, kind=kind)

    # The past

    def now(self) -> Moment:
        """Return the present moment, for `logs` and `history`."""
        logs = StateDirectory(self._directory).logs.glob("*.log")
        listed = self._api.request("GET", path_of(kinds.NAMESPACE, ""), query={"limit": 1})
        return Moment(
            {path.stem: path.stat().st_size for path in logs}, int(listed["metadata"]["resourceVersion"])
        )

    def logs(self, component: str, since: Moment | None = None) -> str:
        """Return the log of a process, or the logs of all of a component, from a moment on."""
        parts = []
        for path in sorted(StateDirectory(self._directory).logs.glob("*.log")):
            if component in (path.stem, path.stem.rpartition("-")[0]):
                start = since.log_bytes.get(path.stem, 0) if since is not None else 0
                with path.open("rb") as log:
                    log.seek(start)
                    parts.append(log.read().decode("utf-8", "replace"))
        if not parts:
            raise ClusterError(f"there is no log of {component}")
        return "".join(parts)

    def history(
        self, reference: Reference | None = None, since: Moment | None = None
    ) -> Sequence[ObjectRevision]:
        """Return the revisions of an object, or of all objects of the namespace, from a moment on.

        The history is what etcd has not compacted, some minutes; with the option `--history` it is whole.
        """
        words = ["--namespace", self._namespace]
        if reference is not None:
            kind, namespace = place_of(reference, self._namespace)
            words = ["/".join(filter(None, (kind.group_resource, namespace, reference.name)))]
        after = 0 if since is None else since.revision
        found = object_history.read(self._directory, *words)
        return [each for each in found if each.revision > after]

    def verify(self, *invariants: str) -> Document:
        """Check all invariants, or these, on the cluster's history (docs/invariants.md); return the report.

        Raises:
            BrokenInvariantsError: an invariant is violated.
        """
        words = [word for name in invariants for word in ("--invariant", name)]
        command = child.command(
            object_history.COMMAND, "verify", "--dir", str(self._directory), "-o", "json", *words
        )
        report: Document = json.loads(object_history.run(command, also=_BROKEN))
        if not report["holds"]:
            raise BrokenInvariantsError(report)
        return report


def _documents(objects: object) -> list[Document]:
    """Return the manifests. Raises: ManifestError, OSError, TypeError."""
    if isinstance(objects, Mapping):
        return [objects]
    if not isinstance(objects, str | Path):
        if not isinstance(objects, Iterable):
            raise TypeError(f"objects are a file, a text, or dictionaries; not {objects!r}")
        return [document for each in objects for document in _documents(each)]
    if isinstance(objects, str) and ("\n" in objects or objects.strip()[:1] in ("", "{")):
        text, file = objects, "text"
    else:
        text, file = Path(objects).read_text(encoding="utf-8"), str(objects)
    found = [manifest.document for manifest in read_objects(text, file, strict=True)]
    if not found:
        raise ManifestError(f"{file}: there is no object in it")
    return found


def _unmet(reference: Reference, namespace: str, condition: Condition, observed: str, seconds: float) -> str:
    where = f"{namespace}/{reference.name}" if namespace else reference.name
    return f"{reference.kind} {where}: not {condition} within {seconds:g} s; {observed or 'no answer'}"
