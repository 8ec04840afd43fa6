"""`fault`: cut, delay or drop calls of a component, or cut links between etcd members."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

from nominee.lab.scenario.acting.base import DONE, Action, Performed, Phase, ProcessView, Undoing
from nominee.lab.scenario.fields import names
from nominee.lab.scenario.fields.declared import Field, serving
from nominee.lab.scenario.fields.fragments import COMPONENT, text
from nominee.lab.scenario.fields.parser import Parser
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.lab.scenario.observing.base import JsonObject
from nominee.localcluster.etcd import links as etcd_links
from nominee.machinery.wire.values.scalars import Json

if TYPE_CHECKING:
    from nominee.lab.scenario.acting.stage import Stage

Link = frozenset[str]
"""Two etcd members."""

_ACTIONS: Final = (
    "cut, cut-response, delay(MS), drop-request, drop-response; for watches hold, merge, relist; "
    "off; chains as for failpoints (docs/faults.md)."
)


def _is_etcd(component: str) -> bool:
    return component.partition("-")[0] == "etcd"


def _caller(parser: Parser, path: FieldPath, value: Json) -> str:
    if value == etcd_links.LEADER:
        return etcd_links.LEADER
    return parser.component(path, value) if _is_etcd(value) else serving(parser, path, value)


def _server(parser: Parser, path: FieldPath, value: Json) -> str:
    return "*" if value == "*" else parser.component(path, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectFault(Action):
    """Cut, delay or drop the calls of a component to others (docs/faults.md); `*` is all.

    `off` removes the faults that `to`, `method` and `kind` select.
    """

    verb: ClassVar[str] = "fault"
    row: ClassVar[str] = (
        "`component`, `action`, `to`, `method`, `kind`: cut, delay, drop calls, make watches stale; cut "
        "links between etcd members ([faults.md](faults.md))"
    )
    undone_in: ClassVar[Phase | None] = Phase.FAULTS
    about: ClassVar[str] = (
        "Cut, delay or drop calls of a component to another one; "
        "or cut links of an etcd member (etcd-1, etcd-leader)."
    )

    component: Annotated[str, Field(COMPONENT, _caller)]
    to: Annotated[
        str, Field(text("The server: apiserver, etcd or cloud; * is all (the default)."), _server)
    ] = "*"
    method: Annotated[str, Field(text("A gRPC method, Bind or Evict; * is all (the default)."))] = "*"
    kind: Annotated[str, Field(text("The kind of the objects; * is all (the default)."))] = "*"
    action: Annotated[str, Field(text(_ACTIONS))]

    def check(self, parser: Parser, path: FieldPath, value: Mapping[str, Json]) -> None:
        with parser.checking((*path, "action")):
            names.fault_action(self.action)
        if not _is_etcd(self.component):
            if self.kind != "*":
                with parser.checking((*path, "kind")):
                    names.kind(self.kind)
            return
        if self.action not in (etcd_links.CUT, etcd_links.OFF):
            parser.fault((*path, "action"), "links between etcd members can be cut, or healed by off")
        if "method" in value or "kind" in value:
            parser.fault(path, "a link between etcd members is cut as a whole, without method and kind")

    def describe(self) -> str:
        fields = {"to": self.to, "method": self.method, "kind": self.kind}
        named = "".join(f" {name} {value}" for name, value in fields.items() if value != "*")
        return f"calls of {self.component}{named or ' to all'}: {self.action}"

    async def perform(self, stage: Stage) -> Performed:
        """Set or remove the fault."""
        await stage.until_started(self.component)
        await stage.cluster.inject_fault(
            self.component, self.action, to=self.to, method=self.method, kind=self.kind
        )
        return DONE

    async def undo(self, undoing: Undoing) -> None:
        """Remove all faults of the component."""
        await undoing.stage.cluster.inject_fault(self.component, "off")

    @classmethod
    def record(cls, before: ProcessView, now: ProcessView) -> list[JsonObject]:
        """Return the faults that were set or removed."""
        before = now.since(before)
        rules = [rule for rule in now.faults if rule not in before.faults]
        gone = {rule[:3] for rule in before.faults} - {rule[:3] for rule in now.faults}
        steps: list[JsonObject] = []
        for to, method, kind, action in [*rules, *((*rule, "off") for rule in sorted(gone))]:
            fields = {"to": to, "method": method, "kind": kind}
            chosen = {key: value for key, value in fields.items() if value != "*"}
            steps.append({cls.verb: {"component": now.name, **chosen, "action": action}})
        return steps

    @classmethod
    def of_links(cls, before: Mapping[Link, bool], now: Mapping[Link, bool]) -> list[JsonObject]:
        """Return the steps between two states of the links, which say whether each is cut.

        One step is for all links of a member. A link that is not in `before` has not changed.
        """
        members = sorted(frozenset().union(*now))
        steps: list[JsonObject] = []
        for action, is_cut in ((etcd_links.CUT, True), (etcd_links.OFF, False)):
            changed = {
                link for link, cut in now.items() if cut is is_cut and before.get(link, cut) is not cut
            }
            for member in members:
                own = {link for link in changed if member in link}
                if len(own) > 1 and len(own) == len(members) - 1:
                    steps.append({cls.verb: {"component": member, "action": action}})
                    changed -= own
            for one, other in sorted(map(sorted, changed)):
                steps.append({cls.verb: {"component": one, "to": other, "action": action}})
        return steps
