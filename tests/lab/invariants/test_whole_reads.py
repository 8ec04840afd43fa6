"""Lists have all objects of their revision, and watches show every write."""

from __future__ import annotations

from google.protobuf.message import Message

from nominee.lab.history.invariants.check import Check
from nominee.lab.history.invariants.checking.evidence import ComponentSettings, Evidence
from nominee.lab.history.invariants.checking.reads import Change, Read, Resumption, Selection, State
from nominee.lab.history.invariants.objects.whole_reads import WholeReads
from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from tests.lab.invariants.histories import History, node, pod

# Revision 1: p created, 2: q created, 3: p bound to n1, 4: a node, 5: q deleted, 6: p unbound.
HISTORY = History().put(pod("p"), pod("q"), pod("p", node="n1"), node("n1")).delete(pod("q")).put(pod("p"))
PODS = Selection(kinds.POD)


def _is_on_n1(obj: Message) -> bool:
    assert isinstance(obj, core.Pod)
    return obj.spec.nodeName == "n1"


ON_N1 = Selection(kinds.POD, "", ("", "spec.nodeName=n1"), _is_on_n1)


def _problems(*reads: Read) -> list[str]:
    check = Check(ComponentSettings(observes_answers=True), [WholeReads.about.name])
    for revision in HISTORY.revisions:
        check.observe(revision)
    for read in reads:
        check.observe_read(read)
    (result,) = check.finish(Evidence(now=HISTORY.now))
    assert result.checked == len(reads)
    return [violation.message for violation in result.violations]


def _list(revision: int, *versions: int, selection: Selection = PODS, is_whole: bool = True) -> State:
    return State(
        client="c", selection=selection, revision=revision, versions=frozenset(versions), is_whole=is_whole
    )


def _event(after: int, revision: int, *, removed: bool | None = False, selection: Selection = PODS) -> Change:
    return Change(client="c", selection=selection, after=after, revision=revision, removed=removed)


def test_whole_lists() -> None:
    lists = [
        _list(0),
        _list(2, 1, 2),
        _list(4, 2, 3),
        _list(5, 3),
        _list(2, 2, is_whole=False),
        _list(5, 3, selection=ON_N1),
        _list(6, selection=ON_N1),
        _list(6, selection=Selection(kinds.POD, "other")),
    ]
    assert _problems(*lists) == []


def test_lists_that_are_not_the_state_of_their_revision() -> None:
    assert _problems(_list(3, 3)) == [
        "c, pods: a list of resourceVersion 3 lacks Pod default/q of revision 2"
    ]
    assert _problems(_list(3, 1, 2)) == [
        "c, pods: a list of resourceVersion 3 has objects of other versions: 1"
    ]
    assert _problems(_list(5, 2, 3, is_whole=False)) == [
        "c, pods: a list of resourceVersion 5 has objects of other versions: 2"
    ]


def test_watches_that_show_every_write() -> None:
    events = [
        _event(0, 1),
        _event(1, 2),
        _event(2, 3),
        _event(3, 4, removed=None),
        _event(3, 5, removed=True),
        _event(5, 5, removed=None),
        _event(5, 6),
        _event(0, 3, selection=ON_N1),
        _event(3, 6, removed=True, selection=ON_N1),
    ]
    assert _problems(*events) == []


def test_a_write_that_a_watch_leaves_out() -> None:
    assert _problems(_event(1, 3)) == [
        "c, pods: a watch that had come to 1 goes on with 3 without Pod default/q of revision 2"
    ]
    assert _problems(_event(3, 5, removed=None)) == [
        "c, pods: a watch that had come to 3 goes on with 5 without Pod default/q of revision 5"
    ]
    assert _problems(_event(2, 6, removed=True, selection=ON_N1)) == [
        "c, pods: a watch that had come to 2 goes on with 6 without Pod default/p of revision 3"
    ]


def test_events_that_are_no_writes() -> None:
    assert _problems(_event(3, 4)) == [
        "c, pods: an event is a write of revision 4, which the history does not have"
    ]
    assert _problems(_event(5, 6, removed=True)) == [
        "c, pods: an event is a removal of revision 6, which the history does not have"
    ]
    assert _problems(_event(3, 2)) == ["c, pods: an event of revision 2 follows one of 3"]


def test_a_watch_is_resumed_where_the_client_was_or_earlier() -> None:
    assert _problems(Resumption(client="c", selection=PODS, revision=3, newest=3)) == []
    assert _problems(Resumption(client="c", selection=PODS, revision=5, newest=3)) == [
        "c, pods: watches from revision 5 on, and was shown 3 at most"
    ]
