"""How to install an optional dependency. Nominee is not in a package index."""

from __future__ import annotations

_REPOSITORY = "https://github.com/nominee-dev/nominee"


def installation(extra: str) -> str:
    """Return the command that installs Nominee with an extra: `study`, `dask` or `import`."""
    return f"pip install 'nominee[{extra}] @ git+{_REPOSITORY}'"
