"""Bodies and options that no object comes of, in the words of upstream's decoders (apimachinery 1.36)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.rest.asgi import in_memory

_PATH = "/api/v1/namespaces/default/configmaps"
_UNREAD = "the object provided is unrecognized (must be of type ConfigMap): "
_PARSED = f"{_UNREAD}couldn't get version/kind; json parse error: "
_HANDLED = 'ConfigMap in version "v1" cannot be handled as a ConfigMap: '


def _map(more: str = "", metadata: str = "") -> str:
    return f'{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"x"{metadata}}}{more}}}'


def _unsupported(option: str, value: str, supported: str) -> str:
    problem = f"{option}: Unsupported value: {value}: supported values: {supported}"
    return f'CreateOptions.meta.k8s.io "" is invalid: {problem}'


@pytest.mark.parametrize(
    ("body", "code", "says"),
    [
        # Go reads a byte at a time: a quotation mark's first one is shown.
        ("{\u201ca", 400, f"{_PARSED}invalid character '\u00e2' looking for beginning of object key"),
        ("\ufeff{}", 400, f"{_PARSED}invalid character 'ï' looking for beginning of value (efbbbf7b7d)"),
        (_map(',"immutable":01'), 400, f"{_PARSED}invalid character '1' after object key:value pair"),
        (_map(',"immutable":+1'), 400, f"{_PARSED}invalid character '+' looking for beginning of value"),
        (_map(","), 400, f"{_PARSED}invalid character '}}' looking for beginning of object key string"),
        # A null in a list or map is the zero value of what it holds.
        (_map(metadata=',"finalizers":[null]'), 422, 'ConfigMap "x" is invalid: [metadata.finalizers: '),
        (_map(metadata=',"labels":{"a":null}'), 201, ""),
        (_map(',"binaryData":{"a":null}'), 201, ""),
        (_map(',"binaryData":{"a":[1]}'), 400, f"{_HANDLED}json: cannot unmarshal array into Go struct"),
        (_map(',"binaryData":{"a":"YQ"}'), 400, f"{_HANDLED}illegal base64 data at input byte 0"),
    ],
)  # fmt: skip
async def test_what_is_no_object(body: str, code: int, says: str) -> None:
    rest = await in_memory()
    headers = {"content-type": "application/json"}
    reply = await rest.request("POST", _PATH, {"dryRun": "All"}, body.encode(), headers)
    assert (reply.code, reply.document.get("message", "")[: len(says)]) == (code, says)


@pytest.mark.parametrize(
    ("query", "code", "says"),
    [
        ({"fieldValidation": "no"}, 422,
         _unsupported("fieldValidation", '"no"', '"", "Ignore", "Strict", "Warn"')),
        ({"dryRun": "no"}, 422, _unsupported("dryRun", '["no"]', '"All"')),
        ({"dryRun": ["All", "no"]}, 422, _unsupported("dryRun", '["All","no"]', '"All"')),
        # Only a patch has this option.
        ({"force": "true"}, 201, ""),
    ],
)  # fmt: skip
async def test_options_of_a_create(query: dict[str, Any], code: int, says: str) -> None:
    rest = await in_memory()
    reply = await rest.request("POST", _PATH, query, _map().encode(), {"content-type": "application/json"})
    assert (reply.code, reply.document.get("message", "")) == (code, says)


async def test_a_policy_of_deletion_and_bytes_that_are_no_protobuf() -> None:
    rest = await in_memory()
    reply = await rest.json("DELETE", f"{_PATH}/x", {"propagationPolicy": "X"})
    supported = 'supported values: "Foreground", "Background", "Orphan", "nil"'
    assert reply.document["message"].endswith(f'propagationPolicy: Unsupported value: "X": {supported}')
    headers = {"content-type": "application/vnd.kubernetes.protobuf"}
    reply = await rest.request("POST", _PATH, {}, b"{}", headers)
    prefix = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    assert reply.document["message"].startswith(_UNREAD + prefix)
