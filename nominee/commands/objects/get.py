"""`nominee get KIND [NAME]`."""

from __future__ import annotations

import json
import signal
from collections.abc import Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import click

from nominee.commands.common import directory_option, output_option
from nominee.completion.candidates import completing, kind_names
from nominee.machinery.printing.tables import align

if TYPE_CHECKING:
    from nominee.machinery.client.api_client import Client


@click.command()
@click.argument("kind", shell_complete=completing(kind_names))
@click.argument("name", required=False)
@directory_option
@click.option("-n", "--namespace", default="default", show_default=True, help="Namespace of the objects.")
@click.option("-A", "--all-namespaces", is_flag=True, help="Objects of all namespaces.")
@click.option("-l", "--selector", default="", help="Label selector.")
@click.option("--field-selector", default="", help="Field selector.")
@click.option("-w", "--watch", is_flag=True, help="After the objects print their changes, until Ctrl-C.")
@click.option("--no-headers", is_flag=True, help="Leave out the header of the table.")
@output_option("table", "wide", "json", "yaml", "name")
def get(kind: str, name: str | None, **options: Any) -> None:
    """Show objects.

    \b
    nominee get pods
    nominee get node node-0 -o yaml
    nominee get po -A -o wide -w
    """
    # 140 ms that --help and completion would pay.
    from nominee.session import find_kind

    kind, slash, after = kind.partition("/")
    if slash and name is None:
        name = after
    if name is not None and options["all_namespaces"]:
        raise click.UsageError("a resource cannot be retrieved by name across all namespaces")
    if name is not None and (options["selector"] or options["field_selector"]):
        raise click.UsageError("give a name or a selector, not both")
    _Get(find_kind(kind), name, options).run()


class _Get:
    """One call of the command: the request, and the output format."""

    def __init__(self, kind: Any, name: str | None, options: dict[str, Any]) -> None:
        self.kind, self.name, self.options = kind, name, options
        self.output: str = options["output"]
        self.everywhere: bool = options["all_namespaces"]
        self.namespace = "" if self.everywhere or not kind.namespaced else options["namespace"]

    def run(self) -> None:
        # 150 ms that --help and completion would pay.
        from nominee.session import converse

        if self.options["watch"]:
            # There is nothing to clean up: Ctrl-C ends the process as the signal does by default.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        converse(self.options["directory"], self._watch if self.options["watch"] else self._once)

    async def _once(self, client: Client) -> None:
        if self.name is not None:
            self._show([await client.get(self.kind, self.name, self.namespace)], single=True)
            return
        listed = await client.list(
            self.kind,
            self.namespace,
            label_selector=self.options["selector"],
            field_selector=self.options["field_selector"],
        )
        items = sorted(listed.items, key=lambda obj: (obj.metadata.namespace, obj.metadata.name))
        if not items and self.output in ("table", "wide"):
            where = f" in {self.namespace} namespace" if self.namespace else ""
            click.echo(f"No resources found{where}.", err=True)
            return
        self._show(items, single=False)

    async def _watch(self, client: Client) -> None:
        """Print the present objects, then every change; columns keep the widths of the first table."""
        field_selector = self.options["field_selector"]
        if self.name is not None:
            field_selector = f"metadata.name={self.name}"
        chosen = {"label_selector": self.options["selector"], "field_selector": field_selector}
        listed = await client.list(self.kind, self.namespace, **chosen)
        # The header is printed with the first row, whose width the columns need.
        widths = self._show(listed.items, single=False, stream=True) if listed.items else None
        watch = client.watch(self.kind, self.namespace, resource_version=listed.resource_version, **chosen)
        async with aclosing(watch) as events:
            async for event in events:
                if event.type != "BOOKMARK":
                    widths = self._show([event.object], single=True, stream=True, widths=widths)

    def _show(
        self,
        items: Sequence[Any],
        *,
        single: bool,
        stream: bool = False,
        widths: Sequence[int] | None = None,
    ) -> Sequence[int] | None:
        if self.output == "name":
            for obj in items:
                click.echo(f"{self.kind.kind.lower()}/{obj.metadata.name}")
        elif self.output in ("json", "yaml"):
            self._show_documents(items, single=single, stream=stream)
        else:
            return self._show_table(items, widths)
        return None

    def _show_documents(self, items: Sequence[Any], *, single: bool, stream: bool) -> None:
        # 60 ms that --help and completion would pay.
        from nominee.machinery.wire import codec

        documents = [codec.to_json(obj) for obj in items]
        if not single and not stream:
            documents = [{"apiVersion": "v1", "items": documents, "kind": "List", "metadata": {}}]
        for document in documents:
            if self.output == "json":
                click.echo(json.dumps(document, indent=4, sort_keys=True))
            else:
                # 70 ms that --help and completion would pay.
                from nominee.machinery.wire.files.manifests import dump_yaml

                click.echo(("---\n" if stream else "") + dump_yaml(document), nl=False)

    def _show_table(self, items: Sequence[Any], widths: Sequence[int] | None) -> Sequence[int]:
        # 70 ms that --help and completion would pay.
        from nominee.machinery.runtime.clock import SystemClock
        from nominee.printing import columns

        now = SystemClock().now()
        how = {"wide": self.output == "wide", "namespaces": self.everywhere and self.kind.namespaced}
        rows = [columns.row(self.kind, obj, now, **how) for obj in items]
        if widths is None and not self.options["no_headers"]:
            rows.insert(0, columns.header(self.kind, **how))
        lines, widths = align(rows, widths)
        for line in lines:
            click.echo(line)
        return widths
