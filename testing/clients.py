"""Clients of Python's libraries for Kubernetes, which are optional."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Literal

Library = Literal["kubernetes", "lightkube", "kr8s"]


def connect(library: Library, kubeconfig: Path, namespace: str) -> object:
    """Return a client of the library. Raises: ImportError: it is not installed; ValueError: unknown."""
    match library:
        case "kubernetes":
            return _imported(library, "kubernetes.config").new_client_from_config(str(kubeconfig))
        case "lightkube":
            module = _imported(library, "lightkube")
            return module.Client(module.KubeConfig.from_file(str(kubeconfig)), namespace=namespace)
        case "kr8s":
            return _imported(library, "kr8s").api(kubeconfig=str(kubeconfig), namespace=namespace)
        case _:
            raise ValueError(f"{library!r} is not known; the libraries are kubernetes, lightkube and kr8s")


def _imported(library: str, module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        text = f"{library} cannot be imported ({error}); install it: pip install {library}"
        raise ImportError(text, name=library) from None
