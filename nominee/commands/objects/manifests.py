"""`nominee apply | create | delete | patch`: write objects without kubectl."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from nominee.commands.common import directory_option
from nominee.completion.candidates import completing, kind_names
from nominee.machinery.patch.patch_type import PatchType

if TYPE_CHECKING:
    from nominee.machinery.client.api_client import Client
    from nominee.machinery.wire.files.manifest_objects import Manifest

T = TypeVar("T")
_files = click.option(
    "-f",
    "--filename",
    "files",
    multiple=True,
    type=click.Path(allow_dash=True),
    help="A file of YAML or JSON; - is stdin. Repeatable.",
)
_namespace = click.option(
    "-n", "--namespace", default="default", show_default=True, help="Namespace of the objects."
)
_dry_run = click.option(
    "--dry-run", is_flag=True, help="Let the server validate the request without storing it."
)
_validate = click.option(
    "--validate",
    type=click.Choice(["strict", "ignore"]),
    default="strict",
    show_default=True,
    help="Whether unknown fields are an error.",
)


async def _send(manifest: Manifest, call: Awaitable[T]) -> T:
    """Make a call about an object; its error names the file, the line and the object.

    Raises:
        StatusError: as the call.
    """
    # 80 ms that --help and completion would pay.
    from nominee.machinery.api.errors import StatusError
    from nominee.session import SERVICE_UNAVAILABLE

    try:
        return await call
    except StatusError as error:
        if error.code != SERVICE_UNAVAILABLE:  # else it is about no object
            path = error.causes[0].field if error.causes else ""
            error.message = f"{manifest.where(path)}: {error.message}"
        raise


def _documents(files: tuple[str, ...], namespace: str, *, strict: bool = False) -> list[Manifest]:
    """Return the objects of manifests, with a namespace if the kind needs one.

    With `strict` an unknown field is an error, as in kubectl: the server would drop it.
    """
    # 80 ms that --help and completion would pay.
    from nominee.machinery.api import kinds
    from nominee.machinery.api.objects import metadata_of
    from nominee.machinery.wire.files.manifest_objects import ManifestError, read_objects

    found: list[Manifest] = []
    for file in files:
        try:
            text = (sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()).decode("utf-8")
            found.extend(read_objects(text, file, strict=strict))
        except OSError as error:
            raise click.UsageError(f"-f {file}: {error.strerror}") from None
        except ManifestError as error:
            raise click.ClickException(str(error)) from None
        except UnicodeDecodeError as error:
            raise click.ClickException(f"{file}: {error}") from None
    if not found:
        raise click.UsageError("no objects: give manifests with -f FILE (or -f - for stdin)")
    for manifest in found:
        metadata = metadata_of(manifest.obj)
        if kinds.of(manifest.obj).namespaced and not metadata.namespace:
            metadata.namespace = namespace
    return found


def _said(obj: Any, what: str) -> None:
    # 50 ms that --help and completion would pay.
    from nominee.machinery.api import kinds

    kind = kinds.of(obj)
    group = f".{kind.group}" if kind.group else ""
    click.echo(f"{kind.kind.lower()}{group}/{obj.metadata.name} {what}")


@click.command()
@directory_option
@_files
@_namespace
@_dry_run
@_validate
def create(directory: Path, files: tuple[str, ...], namespace: str, dry_run: bool, validate: str) -> None:
    """Create the objects of manifests."""
    # 170 ms that --help and completion would pay.
    from nominee.session import converse, each

    documents = _documents(files, namespace, strict=validate == "strict")

    async def work(client: Client) -> None:
        async def make(manifest: Manifest) -> None:
            _said(await _send(manifest, client.create(manifest.obj, dry_run=dry_run)), "created")

        await each(documents, make)

    converse(directory, work)


@click.command()
@directory_option
@_files
@_namespace
@_dry_run
@_validate
def apply(directory: Path, files: tuple[str, ...], namespace: str, dry_run: bool, validate: str) -> None:
    """Create or update the objects of manifests.

    An object that exists is merged with its manifest (strategic merge). Fields that a manifest no longer
    names stay unchanged.
    """
    # 220 ms that --help and completion would pay.
    from nominee.session import converse, each

    documents = _documents(files, namespace, strict=validate == "strict")

    async def work(client: Client) -> None:
        await each(
            documents,
            lambda manifest: _send(
                manifest, _apply(client, manifest.obj, manifest.document, dry_run=dry_run)
            ),
        )

    converse(directory, work)


async def _apply(client: Client, obj: Any, document: Mapping[str, Any], *, dry_run: bool) -> None:
    # 50 ms that --help and completion would pay.
    from nominee.machinery.api import kinds
    from nominee.machinery.client.watches.live_objects import get_if_exists

    kind, metadata = kinds.of(obj), obj.metadata
    present = await get_if_exists(client, kind, metadata.name, metadata.namespace)
    if present is None:
        _said(await client.create(obj, dry_run=dry_run), "created")
        return
    patch = {key: value for key, value in document.items() if key != "status"}
    patched = await client.patch(kind, metadata.name, metadata.namespace, patch, dry_run=dry_run)
    changed = patched.metadata.resourceVersion != present.metadata.resourceVersion
    _said(patched, "configured" if changed else "unchanged")


@click.command()
@click.argument("kind", required=False, shell_complete=completing(kind_names))
@click.argument("names", nargs=-1)
@directory_option
@_files
@_namespace
@_dry_run
@click.option("-l", "--selector", default="", help="Select objects by label.")
@click.option("--all", "everything", is_flag=True, help="Select all objects of the kind in the namespace.")
@click.option(
    "--grace-period", type=int, default=-1, help="Seconds until a pod is killed; negative: the pod's own."
)
@click.option("--ignore-not-found", is_flag=True, help="It is no error if an object does not exist.")
def delete(
    kind: str | None,
    names: tuple[str, ...],
    directory: Path,
    files: tuple[str, ...],
    namespace: str,
    dry_run: bool,
    selector: str,
    everything: bool,
    grace_period: int,
    ignore_not_found: bool,
) -> None:
    """Delete objects.

    Give KIND and NAME..., KIND and a selector or --all, or manifests with -f.
    """
    # 150 ms that --help and completion would pay.
    from nominee.machinery.api import errors, kinds
    from nominee.machinery.api.objects import metadata_of
    from nominee.session import converse, each, find_kind

    if bool(kind) == bool(files):
        raise click.UsageError("give KIND and NAME, or manifests with -f FILE")
    if (selector or everything) and (files or names or "/" in (kind or "")):
        raise click.UsageError("names cannot be provided when a selector or --all is given")
    if selector and everything:
        raise click.UsageError("-l and --all: give one of them")
    wanted: list[tuple[Any, str, str]] = []
    if kind is None:
        wanted += [
            (kinds.of(manifest.obj), metadata.namespace, metadata.name)
            for manifest in _documents(files, namespace)
            for metadata in (metadata_of(manifest.obj),)
        ]
    else:
        kind, _, after = kind.partition("/")
        found = find_kind(kind)
        where = namespace if found.namespaced else ""
        wanted += [(found, where, name) for name in ((after,) if after else names)]
        if not wanted and not (selector or everything):
            raise click.UsageError("resource(s) were provided, but no name was specified; or use -l or --all")

    async def work(client: Client) -> None:
        if not wanted:
            listed = await client.list(found, where, label_selector=selector)
            wanted.extend((found, obj.metadata.namespace, obj.metadata.name) for obj in listed.items)
        if not wanted:
            click.echo("No resources found", err=True)

        async def remove(target: tuple[Any, str, str]) -> None:
            one, in_namespace, name = target
            try:
                await client.delete(
                    one,
                    name,
                    in_namespace,
                    grace_period_seconds=grace_period if grace_period >= 0 else None,
                    # As kubectl: the pods of a Job or ReplicationController are deleted too.
                    propagation_policy="Background",
                    dry_run=dry_run,
                )
            except errors.StatusError as error:
                if not (ignore_not_found and errors.is_not_found(error)):
                    raise
                return
            group = f".{one.group}" if one.group else ""
            click.echo(f'{one.kind.lower()}{group} "{name}" deleted')

        await each(wanted, remove)

    converse(directory, work)


@click.command()
@click.argument("kind", shell_complete=completing(kind_names))
@click.argument("name")
@directory_option
@_namespace
@_dry_run
@click.option("-p", "--patch", "text", required=True, help="The patch: JSON or YAML.")
@click.option(
    "--type",
    "patch_type",
    type=click.Choice(["strategic", "merge", "json"]),
    default="strategic",
    show_default=True,
    help="The kind of patch, as kubectl's --type.",
)
@click.option(
    "--subresource",
    type=click.Choice(["status", "resize", "scale"]),
    default=None,
    help="Patch this subresource.",
)
def patch(
    kind: str,
    name: str,
    directory: Path,
    namespace: str,
    dry_run: bool,
    text: str,
    patch_type: str,
    subresource: str | None,
) -> None:
    """Change an object with a patch.

    \b
    nominee patch pod web -p '{"metadata": {"labels": {"tier": "front"}}}'
    """
    # 160 ms that --help and completion would pay.
    import yaml

    from nominee.session import converse, find_kind

    found = find_kind(kind)
    if not text.strip():
        raise click.UsageError("--patch: the patch is empty")
    try:
        body = json.dumps(yaml.safe_load(text))
    except (yaml.YAMLError, TypeError) as error:
        raise click.UsageError(f"--patch is neither JSON nor YAML: {error}") from None

    where, form = namespace if found.namespaced else "", PatchType[patch_type.upper()]

    async def work(client: Client) -> None:
        if subresource == "scale":
            scale = await client.patch_scale(found, name, where, body, patch_type=form, dry_run=dry_run)
            click.echo(f"scale.autoscaling/{scale.metadata.name} patched")
            return
        patched = await client.patch(
            found,
            name,
            where,
            body,
            patch_type=form,
            subresource=subresource or "",
            dry_run=dry_run,
        )
        _said(patched, "patched")

    converse(directory, work)
