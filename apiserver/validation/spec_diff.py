"""The difference of two structures in the message of an error: lines of indented JSON.

Source: k8s.io/apimachinery/pkg/util/diff 1.36 (Diff), which uses a port of Python's difflib.
"""

from __future__ import annotations

import difflib
import json
from itertools import islice

from google.protobuf.message import Message

from nominee.apiserver.validation import field
from nominee.apiserver.validation.go_dump import dump

_CONTEXT_LINES = 3
_FILE_NAMES_LINES = 2


def diff(old: Message, new: Message) -> str:
    """Return the unified diff of two structures, without a header; it is empty if they are shown alike."""
    lines = difflib.unified_diff(_lines(old), _lines(new), n=_CONTEXT_LINES)
    return "".join(islice(lines, _FILE_NAMES_LINES, None))


def _lines(message: Message) -> list[str]:
    text = json.dumps(dump(message), ensure_ascii=False, indent=1)
    return [f"{line}\n" for line in field.for_html(text).split("\n")]
