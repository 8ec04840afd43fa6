"""Warnings about pods and templates that are valid.

Source: kube-apiserver 1.36, pkg/api/pod/warnings.go and pkg/api/node/util.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Protocol

from nominee.apiserver.validation import names
from nominee.apiserver.validation.pods.every_container import Container, containers_with_paths
from nominee.apiserver.validation.values import addresses
from nominee.machinery.api.names import go_quote
from nominee.machinery.api.pb import core, meta, resource
from nominee.machinery.resources.quantity import Quantity
from nominee.machinery.runtime.memo import CachedRule

_DEPRECATED_LABELS = {
    "beta.kubernetes.io/arch": ("v1.14", "kubernetes.io/arch"),
    "beta.kubernetes.io/os": ("v1.14", "kubernetes.io/os"),
    "failure-domain.beta.kubernetes.io/region": ("v1.17", "topology.kubernetes.io/region"),
    "failure-domain.beta.kubernetes.io/zone": ("v1.17", "topology.kubernetes.io/zone"),
    "beta.kubernetes.io/instance-type": ("v1.17", "node.kubernetes.io/instance-type"),
}
_DEPRECATED_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": ("v1.16", "priorityClassName"),
    "security.alpha.kubernetes.io/sysctls": ("v1.11", "sysctls"),
    "security.alpha.kubernetes.io/unsafe-sysctls": ("v1.11", "sysctls"),
}
_DEPRECATED_VOLUMES = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_VOLUME_PATHS = {"storageos": "storageOS"}
_NO_SELECTOR = "a null labelSelector results in matching no pod"
_WHOLE_BYTES = ("memory", "ephemeral-storage")
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
_SECCOMP_GONE = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"


def of_pod(pod: core.Pod) -> list[str]:
    """Return warnings about a new pod."""
    metadata = pod.metadata
    of_spec = of_template(metadata, pod.spec, "") if metadata.annotations else _of_spec(pod.spec)
    return [*of_name(metadata.name, "the Pod's hostname"), *of_spec]


def of_name(name: str, used_in: str) -> list[str]:
    """Return warnings about a name that other names are made of, and that should be a DNS label."""
    problems = names.dns_label(name) if name else ()
    if not problems:
        return []
    text = "which can result in surprising behavior; a DNS label is recommended"
    return [f"metadata.name: this is used in {used_in}, {text}: [{' '.join(problems)}]"]


class _Spec(Protocol):
    @property
    def template(self) -> core.PodTemplateSpec: ...


class Workload(Protocol):
    """An object that controllers make pods of, by `spec.template`."""

    @property
    def metadata(self) -> meta.ObjectMeta: ...
    @property
    def spec(self) -> _Spec: ...


def workload_warnings(new: Workload, old: Workload | None) -> list[str]:
    """Return warnings about a workload's name and template, where it is new or its spec has changed."""
    if old is not None and new.metadata.generation == old.metadata.generation:
        return []
    found = of_name(new.metadata.name, "Pod names and hostnames") if old is None else []
    return [*found, *of_template(new.spec.template.metadata, new.spec.template.spec, "spec.template.")]


def of_template(metadata: meta.ObjectMeta, spec: core.PodSpec, at: str) -> list[str]:
    """Return warnings about metadata and spec of a pod at the path `at`: "", or a path with a dot."""
    # Pods are created often, and seldom have any of this: it costs what is there.
    annotations = metadata.annotations
    found: list[str] = []
    if spec.nodeSelector or spec.topologySpreadConstraints or spec.HasField("affinity"):
        found += _labels(spec, f"{at}spec")
    for key, (since, instead) in _DEPRECATED_ANNOTATIONS.items() if annotations else ():
        if key in annotations:
            text = f'non-functional in {since}+; use the "{instead}" field instead'
            found.append(f"{at}metadata.annotations[{key}]: {text}")
    if spec.volumes:
        found += _volumes(spec, f"{at}spec.volumes")
    if spec.hostAliases:
        found += _twice([each.ip for each in spec.hostAliases], f"{at}spec.hostAliases", "ip")
    secrets = [each.name for each in spec.imagePullSecrets]
    found += _twice(secrets, f"{at}spec.imagePullSecrets", "name")
    for index, name in enumerate(secrets):
        if not name:
            found.append(f'{at}spec.imagePullSecrets[{index}].name: invalid empty name ""')
    if spec.overhead:
        found += _fractions(spec.overhead, f"{at}spec.overhead")
    if _SECCOMP_POD in annotations and not spec.securityContext.HasField("seccompProfile"):
        found.append(f"{at}metadata.annotations[{_SECCOMP_POD}]: {_SECCOMP_GONE}")
    ports = False
    for path, container in containers_with_paths(f"{at}spec", spec):
        ports = ports or bool(container.ports)
        if annotations:
            found += _container_annotations(container, annotations, spec, at)
        found += _fractions_of(container.resources, f"{path}.resources")
        if len(container.env) > 1:
            found += _hidden(container.env, path)
    if ports:
        found += _ports(containers_with_paths(f"{at}spec", spec))
        found += _port_names(containers_with_paths(f"{at}spec", spec))
    if spec.terminationGracePeriodSeconds < 0:
        text = "must be >= 0; negative values are invalid and will be treated as 1"
        found.append(f"{at}spec.terminationGracePeriodSeconds: {text}")
    if spec.HasField("affinity"):
        found += _affinity(spec.affinity, f"{at}spec.affinity")
    for index, server in enumerate(spec.dnsConfig.nameservers if spec.HasField("dnsConfig") else ()):
        found += addresses.warnings(f"{at}spec.dnsConfig.nameservers[{index}]", server)
    for index, alias in enumerate(spec.hostAliases):
        found += addresses.warnings(f"{at}spec.hostAliases[{index}].ip", alias.ip)
    return found


_of_spec = CachedRule[core.PodSpec, list[str]](lambda spec: of_template(meta.ObjectMeta(), spec, ""))


def deprecated_label(label: str) -> str:
    if label not in _DEPRECATED_LABELS:
        return ""
    since, instead = _DEPRECATED_LABELS[label]
    return f'deprecated since {since}; use "{instead}" instead'


def _labels(spec: core.PodSpec, at: str) -> Iterator[str]:
    for key in sorted(spec.nodeSelector):
        if deprecated_label(key):
            yield f"{at}.nodeSelector[{key}]: {deprecated_label(key)}"
    affinity = spec.affinity.nodeAffinity
    required = affinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms
    where = f"{at}.affinity.nodeAffinity"
    for index, term in enumerate(required):
        path = f"{where}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[{index}]"
        yield from of_term(term, path)
    for index, preferred in enumerate(affinity.preferredDuringSchedulingIgnoredDuringExecution):
        path = f"{where}.preferredDuringSchedulingIgnoredDuringExecution[{index}].preference"
        yield from of_term(preferred.preference, path)
        yield from _odd_values(preferred.preference, path)
    for index, spread in enumerate(spec.topologySpreadConstraints):
        path = f"{at}.topologySpreadConstraints[{index}]"
        if deprecated_label(spread.topologyKey):
            yield f"{path}.topologyKey: {spread.topologyKey} is {deprecated_label(spread.topologyKey)}"
        if not spread.HasField("labelSelector"):
            yield f"{path}.labelSelector: {_NO_SELECTOR}"


def of_term(term: core.NodeSelectorTerm, at: str) -> Iterator[str]:
    for index, expression in enumerate(term.matchExpressions):
        problem = deprecated_label(expression.key)
        if problem:
            yield f"{at}.matchExpressions[{index}].key: {expression.key} is {problem}"


def _odd_values(term: core.NodeSelectorTerm, at: str) -> Iterator[str]:
    """No node has such a label; a required term with one is refused."""
    for index, expression in enumerate(term.matchExpressions):
        for number, value in enumerate(expression.values):
            for problem in names.label_value(value):
                yield f"{at}.matchExpressions[{index}].values[{number}]: {value} is invalid, {problem}"


def _volumes(spec: core.PodSpec, at: str) -> Iterator[str]:
    for index, volume in enumerate(spec.volumes):
        source = volume.volumeSource
        for name, text in _DEPRECATED_VOLUMES.items():
            if source.HasField(name):
                yield f"{at}[{index}].{_VOLUME_PATHS.get(name, name)}: {text}"
        if source.HasField("ephemeral"):
            path = f"{at}[{index}].ephemeral.volumeClaimTemplate.spec"
            yield from of_claim(source.ephemeral.volumeClaimTemplate.spec, path)
    yield from _overlaps(spec.volumes)


def of_claim(spec: core.PersistentVolumeClaimSpec, at: str) -> Iterator[str]:
    yield from _fractions(spec.resources.requests, f"{at}.resources.requests", ("storage",))
    yield from _fractions(spec.resources.limits, f"{at}.resources.limits", ("storage",))


def _overlaps(volumes: Iterable[core.Volume]) -> Iterator[str]:
    """Files of one volume that hide each other; upstream: warningsForOverlappingVirtualPaths."""
    for volume in volumes:
        source, named = volume.volumeSource, f"volume {go_quote(volume.name)}"
        for what, items in (
            (f"ConfigMap {go_quote(source.configMap.localObjectReference.name)}", source.configMap.items),
            (f"Secret {go_quote(source.secret.secretName)}", source.secret.items),
            ("DownwardAPI", source.downwardAPI.items),
        ):
            yield from _hiding(f"{named} ({what})", [(item.path, "") for item in items])
        if source.HasField("projected"):
            if not all(each.ListFields() for each in source.projected.sources):
                yield f"{named} (Projected) has no sources provided"
            files = [file for each in source.projected.sources for file in _files(each)]
            yield from _hiding(f"{named} (Projected)", files)


def _files(source: core.VolumeProjection) -> list[tuple[str, str]]:
    """(path, where from)."""
    token, bundle, certificate = source.serviceAccountToken, source.clusterTrustBundle, source.podCertificate
    if source.configMap.items:
        what = f" (ConfigMap {go_quote(source.configMap.localObjectReference.name)})"
        return [(item.path, what) for item in source.configMap.items]
    if source.secret.items:
        what = f" (Secret {go_quote(source.secret.localObjectReference.name)})"
        return [(item.path, what) for item in source.secret.items]
    if source.downwardAPI.items:
        return [(item.path, " (DownwardAPI)") for item in source.downwardAPI.items]
    if source.HasField("serviceAccountToken"):
        return [(token.path, " (ServiceAccountToken)")]
    if source.HasField("clusterTrustBundle"):
        return [(bundle.path, f" (ClusterTrustBundle {go_quote(bundle.name or bundle.signerName)})")]
    return [
        (certificate.certificateChainPath, " (PodCertificate chain)"),
        (certificate.keyPath, " (PodCertificate key)"),
        (certificate.credentialBundlePath, " (PodCertificate credential bundle)"),
    ]


def _hiding(what: str, files: list[tuple[str, str]]) -> Iterator[str]:
    stripped = [(path.rstrip("/"), source) for path, source in files]
    for index, (path, source) in enumerate(stripped):
        for before, other in stripped[:index] if path else ():
            overlap = f"{before}/".startswith(f"{path}/") or f"{path}/".startswith(f"{before}/")
            if before and overlap:
                yield f"{what}: overlapping paths: {go_quote(path)}{source} with {go_quote(before)}{other}"


def _twice(values: Sequence[str], at: str, name: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, value in enumerate(values):
        if value in seen:
            yield f"{at}[{index}].{name}: duplicate {name} {go_quote(value)}"
        seen.add(value)


def _fractions_of(resources: core.ResourceRequirements, at: str) -> list[str]:
    limits, requests = resources.limits, resources.requests
    if not limits and not requests:
        return []
    return [
        problem
        for name in _WHOLE_BYTES
        for part, amounts in (("limits", limits), ("requests", requests))
        for problem in _fractions(amounts, f"{at}.{part}", (name,))
    ]


def _fractions(
    amounts: Mapping[str, resource.Quantity], at: str, names: tuple[str, ...] = _WHOLE_BYTES
) -> list[str]:
    found: list[str] = []
    for name in names if amounts else ():
        if name in amounts and not _is_whole(amounts[name].string):
            text = go_quote(amounts[name].string)
            found.append(f"{at}[{name}]: fractional byte value {text} is invalid, must be an integer")
    return found


@lru_cache(maxsize=4096)
def _is_whole(text: str) -> bool:
    return Quantity.parse(text or "0").milli_value() % 1000 == 0


def _container_annotations(
    container: Container, annotations: Mapping[str, str], spec: core.PodSpec, at: str
) -> Iterator[str]:
    context = container.securityContext
    key = f"{_SECCOMP_CONTAINER}{container.name}"
    if key in annotations and not context.HasField("seccompProfile"):
        yield f"{at}metadata.annotations[{key}]: {_SECCOMP_GONE}"
    key = f"{_APP_ARMOR}{container.name}"
    armored = spec.securityContext.HasField("appArmorProfile") or context.HasField("appArmorProfile")
    if at and key in annotations and not armored:
        text = 'deprecated since v1.30; use the "appArmorProfile" field instead'
        yield f"{at}metadata.annotations[{key}]: {text}"


def _hidden(variables: Iterable[core.EnvVar], path: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, env in enumerate(variables):
        reference = f"$({env.name})"
        hides = env.HasField("valueFrom") or env.value == reference or reference not in env.value
        if env.name in seen and hides:
            text = f"hides previous definition of {go_quote(env.name)}, which may be dropped when using apply"
            yield f"{path}.env[{index}]: {text}"
        seen.add(env.name)


def _ports(containers: Iterable[tuple[str, Container]]) -> Iterator[str]:
    known: dict[tuple[int, str], list[tuple[str, core.ContainerPort]]] = {}
    for path, container in containers:
        for index, port in enumerate(container.ports):
            at = f"{path}.ports[{index}]"
            if port.hostIP and not port.hostPort:
                shown = (
                    f"{{Name:{port.name} HostPort:{port.hostPort} ContainerPort:{port.containerPort}"
                    f" Protocol:{port.protocol} HostIP:{port.hostIP}}}"
                )
                yield f"{at}: hostIP set without hostPort: {shown}"
            others = known.setdefault((port.containerPort, port.protocol), [])
            for where, other in others:
                if (port.hostIP, port.hostPort) == (other.hostIP, other.hostPort):
                    yield f"{at}: duplicate port definition with {where}"
                elif not port.hostPort or not other.hostPort:
                    yield f"{at}: overlapping port definition with {where}"
                elif port.hostPort == other.hostPort and bool(port.hostIP) != bool(other.hostIP):
                    yield f"{at}: dangerously ambiguous port definition with {where}"
            others.append((at, port))


def _port_names(containers: Iterable[tuple[str, Container]]) -> Iterator[str]:
    known: dict[str, str] = {}
    for path, container in containers:
        for index, port in enumerate(container.ports):
            at = f"{path}.ports[{index}]"
            first = known.setdefault(port.name, at) if port.name else at
            if first != at:
                use = f"services and probes that select ports by name will use {first}"
                yield f"{at}: duplicate port name {go_quote(port.name)} with {first}, {use}"


def _affinity(affinity: core.Affinity, at: str) -> list[str]:
    found = []
    for name in ("podAffinity", "podAntiAffinity"):
        terms = getattr(affinity, name)
        path = f"{at}.{name}.requiredDuringSchedulingIgnoredDuringExecution"
        for index, term in enumerate(terms.requiredDuringSchedulingIgnoredDuringExecution):
            if not term.HasField("labelSelector"):
                found.append(f"{path}[{index}].labelSelector: {_NO_SELECTOR}")
        path = f"{at}.{name}.preferredDuringSchedulingIgnoredDuringExecution"
        for index, weighted in enumerate(terms.preferredDuringSchedulingIgnoredDuringExecution):
            if not weighted.podAffinityTerm.HasField("labelSelector"):
                found.append(f"{path}[{index}].podAffinityTerm.labelSelector: {_NO_SELECTOR}")
    return found
