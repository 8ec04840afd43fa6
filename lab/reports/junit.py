"""JUnit XML."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from xml.etree import ElementTree

_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML document may have, such as the escape character of terminals."""


class Mark(Enum):
    """The element of a test case that did not pass; its value is the element's name."""

    FAILURE = "failure"
    ERROR = "error"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class JUnitCase:
    """A test case; one without `mark` passed. `attributes` are others than name, classname and time."""

    name: str
    classname: str
    seconds: float = 0.0
    mark: Mark | None = None
    message: str = ""
    details: Sequence[str] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)


def junit(suite: str, cases: Sequence[JUnitCase]) -> str:
    """Return a test suite of this name."""
    counts = {mark: str(sum(case.mark is mark for case in cases)) for mark in Mark}
    root = ElementTree.Element(
        "testsuite",
        name=suite,
        tests=str(len(cases)),
        failures=counts[Mark.FAILURE],
        errors=counts[Mark.ERROR],
        skipped=counts[Mark.SKIPPED],
        time=f"{sum(case.seconds for case in cases):.3f}",
    )
    for case in cases:
        names = {"name": case.name, "classname": case.classname, **case.attributes}
        element = ElementTree.SubElement(root, "testcase", {**names, "time": f"{case.seconds:.3f}"})
        if case.properties:
            properties = ElementTree.SubElement(element, "properties")
            for name, value in case.properties.items():
                ElementTree.SubElement(properties, "property", name=name, value=value)
        if case.mark is not None:
            marked = ElementTree.SubElement(element, case.mark.value, message=case.message)
            marked.text = "\n".join(case.details) if case.mark is not Mark.SKIPPED else None
    ElementTree.indent(root)
    # ElementTree would name the locale's encoding.
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}'
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
