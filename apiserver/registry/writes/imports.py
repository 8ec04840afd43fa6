"""POST of an object of another cluster (`WriteOptions.imported`), which goes on as it was there.

Defaults, admission and validation are those of any new object, and its status is validated as an update of
it. Only the server's own fields stay: uid, creation time, generation, managedFields, status. An API of
Kubernetes has no such write; docs/design/027-import.md says why there is one here.
"""

from __future__ import annotations

from nominee.apiserver.kinds.strategy import Environment, M, Strategy, keep
from nominee.apiserver.objects.user import MASTERS
from nominee.apiserver.registry import rules
from nominee.machinery.api import errors
from nominee.machinery.api.objects import copy_of, metadata_of
from nominee.machinery.api.pb import meta

_ANY_REVISION = "1"
"""An update needs a resourceVersion; the status is checked as one of an object that has just been created."""


def fill_metadata(new: meta.ObjectMeta, uid: str, env: Environment) -> None:
    """Set the metadata that only the server sets, where the object has none."""
    given = meta.ObjectMeta()
    if new.uid:
        given.uid = new.uid
    if new.HasField("creationTimestamp"):
        given.creationTimestamp.CopyFrom(new.creationTimestamp)
    rules.fill_metadata(new, uid, env)
    new.MergeFrom(given)


def before_create(strategy: Strategy[M], new: M, env: Environment) -> None:
    """Prepare and validate an imported object in place.

    Raises: StatusError 403 for a user that is not in system:masters, 422.
    """
    metadata, given = metadata_of(new), copy_of(new)
    if MASTERS not in env.user.groups:
        raise errors.forbidden(strategy.kind, metadata.name, f"only {MASTERS} may import objects")
    rules.before_create(strategy, new, env)
    metadata.generation = metadata_of(given).generation or metadata.generation
    endpoint = strategy.subresources.get("status")
    if endpoint is None or not given.HasField("status"):
        return
    metadata.resourceVersion = _ANY_REVISION
    created = copy_of(new)
    keep(new, given, "status")
    rules.before_update(endpoint, new, created, env)
    metadata.ClearField("resourceVersion")
