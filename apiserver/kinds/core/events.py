"""Events: stored as core v1's, whichever API wrote them, and removed after `--event-ttl`.

Source: kube-apiserver 1.36, registry/core/event and pkg/apis/core/validation/events.go.
"""

from __future__ import annotations

from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.strategy import Environment, Strategy
from nominee.apiserver.objects.selectable_fields import selectable
from nominee.apiserver.printing.cells import since
from nominee.apiserver.printing.columns import Cells, Column, Columns, wide
from nominee.apiserver.validation import field, names
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import core, meta

_NOTE_BYTES_MAX = 1024
_TEXT_BYTES_MAX = 128


class EventStrategy(Strategy[core.Event]):
    """Events as core v1 has always taken them."""

    collects_garbage = False
    expires = True

    validates_metadata = False

    def validate(self, new: core.Event, env: Environment) -> list[Cause]:
        return validate(new)

    def validate_update(self, new: core.Event, old: core.Event, env: Environment) -> list[Cause]:
        return validate(new)


def validate(obj: core.Event) -> list[Cause]:
    """Check the rules for all Events; one with an eventTime also follows the newer rules."""
    errors = _newer(obj) if is_set(obj.eventTime) else _namespace(obj, ("", "default"))
    return errors + field.check("namespace", obj.metadata.namespace, names.dns_subdomain)


def _namespace(obj: core.Event, elsewhere: tuple[str, ...]) -> list[Cause]:
    """An event lies where its object does; those about cluster-scoped objects lie in `elsewhere`."""
    about, own = obj.involvedObject.namespace, obj.metadata.namespace
    if (own in elsewhere) if not about else own == about:
        return []
    return [field.invalid("involvedObject.namespace", about, "does not match event.namespace")]


def _newer(obj: core.Event) -> list[Cause]:
    errors = [] if obj.involvedObject.namespace else _namespace(obj, ("default", "kube-system"))
    if not obj.reportingComponent:
        errors.append(field.required("reportingController"))
    errors += field.check("reportingController", obj.reportingComponent, names.qualified_name)
    for name in ("reportingInstance", "action", "reason"):
        value = getattr(obj, name)
        if not value:
            errors.append(field.required(name))
        elif len(value.encode()) > _TEXT_BYTES_MAX:
            errors.append(field.invalid(name, "", f"can have at most {_TEXT_BYTES_MAX} characters"))
    if len(obj.message.encode()) > _NOTE_BYTES_MAX:
        errors.append(field.invalid("message", "", f"can have at most {_NOTE_BYTES_MAX} characters"))
    return errors


def is_set(time: meta.Time | meta.MicroTime) -> bool:
    return bool(time.seconds or time.nanos)


def _fields(event: core.Event) -> dict[str, str]:
    about = event.involvedObject
    source = event.source.component or event.reportingComponent
    return {
        "metadata.name": event.metadata.name,
        "metadata.namespace": event.metadata.namespace,
        "involvedObject.kind": about.kind,
        "involvedObject.namespace": about.namespace,
        "involvedObject.name": about.name,
        "involvedObject.uid": about.uid,
        "involvedObject.apiVersion": about.apiVersion,
        "involvedObject.resourceVersion": about.resourceVersion,
        "involvedObject.fieldPath": about.fieldPath,
        "reason": event.reason,
        "reportingComponent": event.reportingComponent,
        "source": source,
        "type": event.type,
    }


def _row(event: core.Event, now: float) -> Cells:
    first = since(event.firstTimestamp if event.firstTimestamp.seconds else event.eventTime, now)
    last = since(event.lastTimestamp, now) if event.lastTimestamp.seconds else first
    count = event.count
    if event.HasField("series"):
        last, count = since(event.series.lastObservedTime, now), event.series.count
    elif not count:
        count = 1
    about = event.involvedObject
    subject = f"{about.kind.lower()}/{about.name}" if about.name else about.kind.lower()
    component = event.source.component or event.reportingComponent
    instance = event.source.host or event.reportingInstance
    return [
        last,
        event.type,
        event.reason,
        subject,
        about.fieldPath,
        f"{component}, {instance}" if instance else component,
        event.message.strip(),
        first,
        count,
        event.metadata.name,
    ]


_COLUMNS = Columns(
    _row,
    Column("Last Seen", "event-v1#lastTimestamp"),
    Column("Type", "event-v1#type"),
    Column("Reason", "event-v1#reason"),
    Column("Object", "event-v1#involvedObject"),
    wide("Subobject", "objectreference-v1#fieldPath"),
    wide("Source", "event-v1#source"),
    Column("Message", "event-v1#message"),
    wide("First Seen", "event-v1#firstTimestamp"),
    wide("Count", "event-v1#count"),
    Column("Name", "objectmeta-meta-v1#name", format="name", wide=True),
)
RULES = KindRules(
    kind=kinds.EVENT,
    strategy=EventStrategy(kinds.EVENT),
    columns=_COLUMNS,
    fields=selectable(core.Event, _fields),
    created_by_update=True,
)
