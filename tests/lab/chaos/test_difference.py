"""Where a run differs from the undisturbed one."""

from __future__ import annotations

from nominee.lab.chaos.cases.difference import first_difference, writes_around
from nominee.lab.chaos.cases.trace import TracedWrite


def writes(*texts: str) -> list[TracedWrite]:
    """Return writes a second apart, of texts as `Pod a: created`."""
    found = []
    for number, text in enumerate(texts):
        subject, _, changes = text.partition(": ")
        found.append(TracedWrite(float(number), number + 10, subject, tuple(changes.split(", "))))
    return found


PLAIN = writes("Pod a: created", "Pod b: created", "Pod a: bound", "Pod b: bound", "Pod a: deleted")


def test_another_order_of_objects_is_no_difference() -> None:
    assert first_difference(PLAIN, [PLAIN[1], PLAIN[0], *PLAIN[2:]]) is None


def test_the_first_other_write_is_the_difference() -> None:
    run = writes("Pod a: created", "Pod b: created", "Pod b: bound", "Pod a: failed", "Pod a: deleted")
    found = first_difference(PLAIN, run)
    assert found is not None
    assert found.describe() == "3.000 s, Pod a: failed; undisturbed: bound"
    assert writes_around(run, "Pod a", found.seconds) == [
        "0.000 s, revision 10: created",
        "3.000 s, revision 13: failed",
        "4.000 s, revision 14: deleted",
    ]


def test_a_write_more_and_a_write_less() -> None:
    more = first_difference(PLAIN, [*PLAIN, *writes("Pod c: created")])
    less = first_difference(PLAIN, [PLAIN[0], PLAIN[1], PLAIN[3]])
    assert more is not None
    assert more.describe() == "0.000 s, Pod c: created; undisturbed: no such write"
    assert less is not None
    assert less.describe() == "2.000 s, Pod a: no further write; undisturbed: bound"
