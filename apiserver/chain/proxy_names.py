"""The name in the path of a proxy request to a pod or node.

Source: apimachinery 1.36, util/net (SplitSchemeNamePort).
"""

from __future__ import annotations

from nominee.machinery.api import errors
from nominee.machinery.api.names import go_quote


def proxied_name_and_port(what: str, text: str) -> tuple[str, str]:
    """Return name and port of the `NAME`, `NAME:PORT` or `SCHEME:NAME:PORT` of a proxy request.

    Raises: StatusError 400.
    """
    scheme, name, port = "", text, ""
    parts = text.split(":")
    if len(parts) == 2:
        name, port = parts
    elif len(parts) == 3:
        scheme, name, port = parts
    if not name or len(parts) > 3 or scheme not in ("", "http", "https"):
        raise errors.bad_request(f"invalid {what} request {go_quote(text)}")
    return name, port
