"""Checks of a body against its request: the name, the namespace and the version to change."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message

from apiserver.kinds.strategy import Strategy
from apiserver.kinds.table import rules_of
from apiserver.objects.cached_object import CachedObject
from apiserver.objects.list_options import InvalidResourceVersion, parse_revision
from apiserver.validation import field, names
from machinery.api import errors
from machinery.api.errors import StatusError
from machinery.api.kinds import Kind
from machinery.api.names import go_quote
from machinery.api.pb import meta


def check_segment(name: str) -> None:
    """A name may be a part of a storage key; 400 as upstream's key functions give it."""
    problems = names.path_segment(name)
    if problems:
        raise errors.bad_request(f"Name parameter invalid: {go_quote(name)}: {';'.join(problems)}")


def check_name(name: str, metadata: meta.ObjectMeta) -> None:
    """The body's name is the request's."""
    if not metadata.name:
        raise errors.bad_request(
            f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )
    if metadata.name != name:
        raise errors.bad_request(
            f"the name of the object ({metadata.name}) does not match the name on the URL ({name})"
        )


def check_scope(kind: Kind[Any], namespace: str) -> None:
    """Nothing is listed or watched in a namespace that is in none."""
    if namespace and not kind.namespaced:
        raise errors.unknown_resource()


def check_namespace(strategy: Strategy[Message], namespace: str, metadata: meta.ObjectMeta) -> None:
    """The body's namespace is the request's, or is taken from it."""
    if not strategy.kind.namespaced:
        if metadata.namespace:
            metadata.namespace = ""
        return
    if not metadata.namespace:
        metadata.namespace = namespace
    elif metadata.namespace != namespace:
        raise errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def check_revision(strategy: Strategy[Message], metadata: meta.ObjectMeta, current: CachedObject) -> None:
    """Optimistic concurrency: 409 for an old version, 422 for none where one is needed."""
    version = metadata.resourceVersion
    if not version or version == "0":
        if rules_of(strategy.kind).needs_resource_version:
            problem = field.invalid("metadata.resourceVersion", 0, "must be specified for an update")
            raise errors.invalid(strategy.kind, current.name, [problem])
        metadata.resourceVersion = str(current.revision)
    elif version != str(current.revision):
        try:
            parse_revision(version)
        except InvalidResourceVersion as error:
            # Upstream compares numbers; text that is not a number is an internal error there.
            prefix = f'resourceVersion: Invalid value: "{version}": '
            raise StatusError(500, "", str(error).removeprefix(prefix)) from None
        raise errors.conflict(strategy.kind, current.name)
