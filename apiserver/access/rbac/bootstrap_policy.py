"""Parse bootstrap_policy.txt into the roles and bindings that it describes. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nominee.machinery.api.pb import rbac

_PATH = Path(__file__).with_name("bootstrap_policy.txt")
GROUP = "rbac.authorization.k8s.io"
AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
LABEL = ("kubernetes.io/bootstrapping", "rbac-defaults")
_READ = ("get", "list", "watch")
_WRITE = ("create", "delete", "deletecollection", "patch", "update")
_VERBS = {"READ": _READ, "WRITE": _WRITE, "RW": tuple(sorted((*_READ, *_WRITE)))}


@dataclass(frozen=True, slots=True)
class Policy:
    """The default roles and bindings, with names, labels and annotations only in their metadata."""

    cluster_roles: list[Any] = field(default_factory=list)
    roles: list[Any] = field(default_factory=list)
    cluster_role_bindings: list[Any] = field(default_factory=list)
    role_bindings: list[Any] = field(default_factory=list)


def load() -> Policy:
    """Return the policy of the packaged table."""
    return parse(_PATH.read_text(encoding="utf-8"))


def parse(text: str) -> Policy:
    """Parse the text of a policy table.

    Raises: ValueError for a line of an unknown form.
    """
    policy = Policy()
    role: Any = None
    for line in text.splitlines():
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if line.startswith(" "):
            _add_rule(role, line)
        elif words[0] == "clusterrole":
            role = rbac.ClusterRole()
            policy.cluster_roles.append(_named(role, "", words[1]))
            _label(role, words[2:])
        elif words[0] == "role":
            role = rbac.Role()
            policy.roles.append(_named(role, words[1], words[2]))
        elif words[0] == "clusterbinding":
            binding = _named(rbac.ClusterRoleBinding(), "", words[1])
            policy.cluster_role_bindings.append(_bind(binding, "ClusterRole", words[2:]))
        elif words[0] == "binding":
            scoped = _named(rbac.RoleBinding(), words[1], words[2])
            policy.role_bindings.append(_bind(scoped, "Role", words[3:]))
        else:
            raise ValueError(f"{line!r} begins nothing")
    return policy


def _named(obj: Any, namespace: str, name: str) -> Any:
    obj.metadata.name, obj.metadata.namespace = name, namespace
    obj.metadata.labels[LABEL[0]] = LABEL[1]
    obj.metadata.annotations[AUTOUPDATE] = "true"
    return obj


def _label(role: Any, words: list[str]) -> None:
    for word in words:
        what, _, key = word.partition("=")
        full = f"{GROUP}/{key}"
        if what == "label":
            role.metadata.labels[full] = "true"
        elif what == "aggregates":
            role.aggregationRule.clusterRoleSelectors.add().matchLabels[full] = "true"
        else:
            raise ValueError(f"{word!r} is no property of a role")


def _add_rule(role: Any, line: str) -> None:
    parts = [part.split() for part in line.split("|")]
    verbs = [verb for word in parts[0] for verb in _VERBS.get(word, (word,))]
    rule = role.rules.add(verbs=verbs)
    if parts[1] == ["urls"]:
        rule.nonResourceURLs.extend(parts[2])
        return
    rule.apiGroups.extend("" if group == "core" else group for group in parts[1])
    rule.resources.extend(parts[2])
    if len(parts) > 3:
        rule.resourceNames.extend(parts[3])


def _bind(binding: Any, kind: str, words: list[str]) -> Any:
    binding.roleRef.apiGroup, binding.roleRef.kind, binding.roleRef.name = GROUP, kind, words[0]
    for word in words[1:]:
        what, _, name = word.partition(":")
        if what == "account":
            namespace, _, account = name.partition(":")
            binding.subjects.add(kind="ServiceAccount", namespace=namespace, name=account)
        elif what in ("user", "group"):
            binding.subjects.add(kind=what.capitalize(), apiGroup=GROUP, name=name)
        else:
            raise ValueError(f"{word!r} is no subject")
    return binding
