"""Matching and covering of RBAC policy rules. Pure.

Source: kube-apiserver 1.36, pkg/apis/rbac/v1/evaluation_helpers.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from nominee.apiserver.objects.attributes import Attributes

ALL = "*"


@dataclass(frozen=True, slots=True)
class Rule:
    """A PolicyRule as tuples, which can be compared and hashed."""

    verbs: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()

    @classmethod
    def of(cls, rule: Any) -> Rule:
        """Return the rule of a PolicyRule message."""
        return cls(
            tuple(rule.verbs),
            tuple(rule.apiGroups),
            tuple(rule.resources),
            tuple(rule.resourceNames),
            tuple(rule.nonResourceURLs),
        )

    def matches(self, attributes: Attributes) -> bool:
        """Report whether the rule allows a request when resourceNames are ignored."""
        if attributes.verb not in self.verbs and ALL not in self.verbs:
            return False
        if not attributes.is_resource:
            return url_matches(self.urls, attributes.path)
        if attributes.group not in self.groups and ALL not in self.groups:
            return False
        return resource_matches(self.resources, attributes.resource, attributes.subresource)

    def allows(self, attributes: Attributes) -> bool:
        """Report whether the rule allows a request."""
        if not self.matches(attributes):
            return False
        return not self.names or not attributes.is_resource or attributes.name in self.names

    def __str__(self) -> str:
        """Return the rule as upstream prints it in a refusal."""
        shown = [
            f"{title}:[{' '.join(_quoted(value) for value in values)}]"
            for title, values in (
                ("APIGroups", self.groups),
                ("Resources", self.resources),
                ("NonResourceURLs", self.urls),
                ("ResourceNames", self.names),
                ("Verbs", self.verbs),
            )
            if values
        ]
        return f"{{{', '.join(shown)}}}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def quote(texts: Iterable[str]) -> str:
    """Return a list of strings as Go's %q prints it."""
    return f"[{' '.join(_quoted(text) for text in texts)}]"


def resource_matches(resources: Sequence[str], resource: str, subresource: str) -> bool:
    """Report whether `resources` has the resource: `pods`, `pods/status`, `*/status` (of all) or `*`."""
    combined = f"{resource}/{subresource}" if subresource else resource
    if ALL in resources or combined in resources:
        return True
    return bool(subresource) and f"*/{subresource}" in resources


def url_matches(urls: Sequence[str], path: str) -> bool:
    """Report whether one of `urls` is the path, or ends in `*` and is a prefix of it."""
    return any(url in (ALL, path) or (url.endswith("*") and path.startswith(url.rstrip("*"))) for url in urls)


# Covering of rules by rules: for the escalation check, that users grant only permissions that they have.


def simple(rules: Iterable[Rule]) -> list[Rule]:
    """Split rules into rules of one verb, group, resource and name, or of one verb and path."""
    found = []
    for rule in rules:
        found += [
            Rule((verb,), (group,), (resource,), names)
            for group in rule.groups
            for resource in rule.resources
            for verb in rule.verbs
            for names in (*((name,) for name in rule.names), *(() if rule.names else ((),)))
        ]
        found += [Rule((verb,), urls=(url,)) for url in rule.urls for verb in rule.verbs]
    return found


def uncovered_rules(held: Sequence[Rule], wanted: Iterable[Rule]) -> list[Rule]:
    """Return the simple rules of `wanted` that no rule of `held` covers."""
    return [rule for rule in simple(wanted) if not any(_covers(own, rule) for own in held)]


def _covers(own: Rule, single: Rule) -> bool:
    if ALL not in own.verbs and single.verbs[0] not in own.verbs:
        return False
    if single.urls:
        url = single.urls[0]
        # A pattern is covered by itself, and by a pattern with a shorter prefix.
        return any(
            each in (ALL, url) or (each.endswith("*") and url.startswith(each.rstrip("*")))
            for each in own.urls
        )
    if own.urls and not own.resources:
        return False
    if ALL not in own.groups and single.groups[0] not in own.groups:
        return False
    resource, _, subresource = single.resources[0].partition("/")
    if not resource_matches(own.resources, resource, subresource):
        return False
    return not own.names or (bool(single.names) and single.names[0] in own.names)


def compact(singles: Iterable[Rule]) -> list[Rule]:
    """Join simple rules of the same group and resource without names into one rule with all their verbs."""
    together: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = {}
    others = []
    for rule in singles:
        if rule.urls or rule.names:
            others.append(rule)
            continue
        together.setdefault((rule.groups, rule.resources), []).extend(rule.verbs)
    return [
        Rule(tuple(dict.fromkeys(verbs)), groups, resources)
        for (groups, resources), verbs in together.items()
    ] + others
