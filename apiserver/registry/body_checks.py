"""Checks of a body against its request: the name, the namespace and the resourceVersion."""

from __future__ import annotations

from google.protobuf.message import Message

from nominee.apiserver.kinds.strategy import Strategy
from nominee.apiserver.kinds.table import rules_of
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.list_options import InvalidResourceVersion, parse_revision
from nominee.apiserver.validation import field, names
from nominee.machinery.api import errors
from nominee.machinery.api.errors import GroupKind, StatusError
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.names import go_quote
from nominee.machinery.api.pb import meta


def check_segment(name: str) -> None:
    """Check that a name may be a part of a storage key.

    Raises: StatusError 400, worded as upstream's key functions do.
    """
    problems = names.path_segment(name)
    if problems:
        raise errors.bad_request(f"Name parameter invalid: {go_quote(name)}: {';'.join(problems)}")


def check_name(name: str, metadata: meta.ObjectMeta) -> None:
    """Check that the body has the request's name.

    Raises: StatusError 400.
    """
    if not metadata.name:
        raise errors.bad_request(
            f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )
    if metadata.name != name:
        raise errors.bad_request(
            f"the name of the object ({metadata.name}) does not match the name on the URL ({name})"
        )


def check_scope(kind: AnyKind, namespace: str) -> None:
    """Check that a namespace is given only for namespaced kinds.

    Raises: StatusError 404.
    """
    if namespace and not kind.namespaced:
        raise errors.unknown_resource()


def check_namespace(strategy: Strategy[Message], namespace: str, metadata: meta.ObjectMeta) -> None:
    """Set the body's namespace to the request's, in place, unless it has another one.

    Raises: StatusError 400 for another namespace.
    """
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
    """Check the resourceVersion of a body against the stored object.

    Raises: StatusError 409 for an old version, 422 when a required version is missing.
    """
    version = metadata.resourceVersion
    if not version or version == "0":
        if rules_of(strategy.kind).needs_resource_version:
            problem = field.invalid("metadata.resourceVersion", 0, "must be specified for an update")
            # Upstream has only the resource here, not the kind.
            resource = GroupKind(strategy.kind.group, strategy.kind.plural)
            raise errors.invalid(resource, current.name, [problem])
        metadata.resourceVersion = str(current.revision)
    elif version != str(current.revision):
        try:
            parse_revision(version)
        except InvalidResourceVersion as error:
            # Upstream compares numbers; text that is not a number is an internal error there.
            prefix = f'resourceVersion: Invalid value: "{version}": '
            raise StatusError(500, "", str(error).removeprefix(prefix)) from None
        raise errors.conflict(strategy.kind, current.name)
