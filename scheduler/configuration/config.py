"""Read, default and validate KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1).

All errors are found at once, each with its field path, as upstream words it. Source: kube-scheduler 1.36,
config types, defaults and validation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from nominee.machinery.wire.files.manifests import load_documents
from nominee.machinery.wire.values.scalars import DecodeError
from nominee.scheduler.configuration.fields import Fields
from nominee.scheduler.configuration.profiles import ProfileConfig, default_profile, read_profile
from nominee.scheduler.framework.runtime.profile import DEFAULT_SCHEDULER_NAME

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
KIND: Final = "KubeSchedulerConfiguration"
EXTENDER_SECONDS_MAX: Final = 5.0  # for one call without httpTimeout


class ConfigError(ValueError):
    """The configuration is rejected; `problems` has one line each, with the field's path."""

    def __init__(self, problems: list[str]) -> None:
        unique = list(dict.fromkeys(problems))
        super().__init__(unique[0] if len(unique) == 1 else "\n  ".join(["", *unique]))
        self.problems = unique


@dataclass(frozen=True, slots=True)
class LeaderElection:
    """Seconds; off by default here: with one scheduler a dead leader's lease would only cost time."""

    leader_elect: bool = False
    lease_seconds: float = 15.0
    renew_deadline_seconds: float = 10.0
    retry_seconds: float = 2.0
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"


@dataclass(frozen=True, slots=True)
class ExtenderTls:
    """Certificates for an extender: files, or data in base64, which take precedence."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: str = ""
    key_data: str = ""
    ca_data: str = ""


@dataclass(frozen=True, slots=True)
class Extender:
    """A scheduler extender as configured; its verbs are paths under `url_prefix`, empty: not called."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    bind_verb: str = ""
    weight: int = 0
    enable_https: bool = False
    http_timeout_seconds: float = EXTENDER_SECONDS_MAX
    node_cache_capable: bool = False
    managed_resources: tuple[str, ...] = ()
    ignorable: bool = False
    tls: ExtenderTls = ExtenderTls()


@dataclass(frozen=True, slots=True)
class SchedulerConfig:
    """The whole configuration. `percentage_of_nodes_to_score` None or 0: by the size of the cluster."""

    parallelism: int = 16
    leader_election: LeaderElection = field(default_factory=LeaderElection)
    percentage_of_nodes_to_score: int | None = None
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
    profiles: tuple[ProfileConfig, ...] = field(default_factory=lambda: (default_profile(),))
    extenders: tuple[Extender, ...] = ()
    delay_cache_until_active: bool = False


def load(text: str) -> SchedulerConfig:
    """Return the configuration of a YAML or JSON text.

    Raises:
        ConfigError: with every error found.
    """
    try:
        documents = [document for document in load_documents(text) if document is not None]
    except DecodeError as error:
        raise ConfigError([str(error)]) from None
    if len(documents) != 1 or not isinstance(documents[0], Mapping):
        raise ConfigError([f"expected one {KIND} object, got {len(documents)} documents"])
    return read(documents[0])


def read(data: Mapping[str, Any]) -> SchedulerConfig:
    """Return the configuration of a JSON object.

    Raises:
        ConfigError: with every error found.
    """
    version, kind = data.get("apiVersion", ""), data.get("kind", "")
    if version != API_VERSION or kind != KIND:
        raise ConfigError(
            [f'no kind "{kind}" is registered for version "{version}": expected {KIND} in {API_VERSION}']
        )
    problems: list[str] = []
    fields = Fields(data, "", problems)
    fields.ignore("apiVersion", "kind", "clientConnection", "enableProfiling", "enableContentionProfiling")
    parallelism = fields.integer("parallelism", 16)
    if parallelism <= 0:
        fields.invalid("parallelism", parallelism, "should be an integer value greater than zero")
    percentage = fields.optional_integer("percentageOfNodesToScore")
    if percentage is not None and not 0 <= percentage <= 100:
        fields.invalid("percentageOfNodesToScore", percentage, "not in valid range [0-100]")
    initial = fields.integer("podInitialBackoffSeconds", 1)
    if initial <= 0:
        fields.invalid("podInitialBackoffSeconds", initial, "must be greater than 0")
    longest = fields.integer("podMaxBackoffSeconds", 10)
    if longest < initial:
        fields.invalid(
            "podMaxBackoffSeconds", longest, "must be greater than or equal to PodInitialBackoffSeconds"
        )
    profiles = _profiles(fields)
    config = SchedulerConfig(
        parallelism=parallelism,
        leader_election=_leader_election(fields.child("leaderElection")),
        percentage_of_nodes_to_score=percentage,
        pod_initial_backoff_seconds=initial,
        pod_max_backoff_seconds=longest,
        profiles=profiles,
        extenders=_extenders(fields),
        delay_cache_until_active=fields.boolean("delayCacheUntilActive", False),
    )
    fields.finish()
    if problems:
        raise ConfigError(problems)
    return config


def _profiles(fields: Fields) -> tuple[ProfileConfig, ...]:
    children = fields.children("profiles")
    if not children:
        return (default_profile(),)
    profiles = []
    seen: set[str] = set()
    for child in children:
        # One nameless profile is the default one; of several, each must say its name.
        profile = read_profile(child, DEFAULT_SCHEDULER_NAME if len(children) == 1 else "")
        if not profile.scheduler_name:
            child.required("schedulerName")
        elif profile.scheduler_name in seen:
            child.duplicate("schedulerName", profile.scheduler_name)
        seen.add(profile.scheduler_name)
        profiles.append(profile)
    for child, profile in zip(children[1:], profiles[1:], strict=True):
        if profile.queue_sort != profiles[0].queue_sort:
            child.invalid("plugins.queueSort", profile.queue_sort, "has to match for all profiles")
    return tuple(profiles)


def _leader_election(fields: Fields) -> LeaderElection:
    default = LeaderElection()
    found = LeaderElection(
        leader_elect=fields.boolean("leaderElect", default.leader_elect),
        lease_seconds=fields.duration("leaseDuration", default.lease_seconds),
        renew_deadline_seconds=fields.duration("renewDeadline", default.renew_deadline_seconds),
        retry_seconds=fields.duration("retryPeriod", default.retry_seconds),
        resource_name=fields.text("resourceName", default.resource_name),
        resource_namespace=fields.text("resourceNamespace", default.resource_namespace),
    )
    lock = fields.text("resourceLock", "leases")
    fields.finish()
    if lock != "leases":
        fields.invalid("resourceLock", lock, 'resourceLock value must be "leases"')
    if not found.leader_elect:
        return found
    if found.lease_seconds <= found.renew_deadline_seconds:
        fields.invalid(
            "leaseDuration", found.lease_seconds, "LeaseDuration must be greater than RenewDeadline"
        )
    if found.renew_deadline_seconds <= found.retry_seconds:
        fields.invalid(
            "renewDeadline", found.renew_deadline_seconds, "RenewDeadline must be greater than RetryPeriod"
        )
    for name, value in (
        ("leaseDuration", found.lease_seconds),
        ("renewDeadline", found.renew_deadline_seconds),
        ("retryPeriod", found.retry_seconds),
    ):
        if value <= 0:
            fields.invalid(name, value, "must be greater than zero")
    if not found.resource_name:
        fields.required("resourceName")
    if not found.resource_namespace:
        fields.required("resourceNamespace")
    return found


def _tls(fields: Fields) -> ExtenderTls:
    found = ExtenderTls(
        insecure=fields.boolean("insecure", False),
        server_name=fields.text("serverName", ""),
        cert_file=fields.text("certFile", ""),
        key_file=fields.text("keyFile", ""),
        ca_file=fields.text("caFile", ""),
        cert_data=fields.text("certData", ""),
        key_data=fields.text("keyData", ""),
        ca_data=fields.text("caData", ""),
    )
    fields.finish()
    return found


def _extenders(fields: Fields) -> tuple[Extender, ...]:
    found = []
    binders = 0
    managed: set[str] = set()
    for child in fields.children("extenders"):
        resources = []
        for resource in child.children("managedResources"):
            name = resource.text("name", "")
            resource.ignore("ignoredByScheduler")
            resource.finish()
            if not name:
                resource.required("name")
            elif name in managed:
                resource.duplicate("name", name)
            managed.add(name)
            resources.append(name)
        extender = Extender(
            url_prefix=child.text("urlPrefix", ""),
            filter_verb=child.text("filterVerb", ""),
            preempt_verb=child.text("preemptVerb", ""),
            prioritize_verb=child.text("prioritizeVerb", ""),
            bind_verb=child.text("bindVerb", ""),
            weight=child.integer("weight", 0),
            enable_https=child.boolean("enableHTTPS", False),
            http_timeout_seconds=child.duration("httpTimeout", 0.0) or EXTENDER_SECONDS_MAX,
            node_cache_capable=child.boolean("nodeCacheCapable", False),
            managed_resources=tuple(resources),
            ignorable=child.boolean("ignorable", False),
            tls=_tls(child.child("tlsConfig")),
        )
        child.finish()
        if extender.prioritize_verb and extender.weight <= 0:
            child.invalid("weight", extender.weight, "must have a positive weight applied to it")
        binders += bool(extender.bind_verb)
        found.append(extender)
    if binders > 1:
        fields.invalid(
            "extenders",
            f"found {binders} extenders implementing bind",
            "only one extender can implement bind",
        )
    return tuple(found)
