"""Paths in files systems and modes of files, as parts of volumes (kube-apiserver 1.36)."""

from __future__ import annotations

from apiserver.validation import field
from machinery.errors import Cause

MODE_PROBLEM = "must be a number between 0 and 0777 (octal), both inclusive"


def no_backsteps(path: str, target: str) -> list[Cause]:
    if ".." in target.split("/"):
        return [field.invalid(path, target, "must not contain '..'")]
    return []


def local_descending(path: str, target: str) -> list[Cause]:
    errors = [field.invalid(path, target, "must be a relative path")] if target.startswith("/") else []
    return errors + no_backsteps(path, target)


def local_non_reserved(path: str, target: str) -> list[Cause]:
    errors = local_descending(path, target)
    if target.startswith("..") and not target.startswith("../"):
        errors.append(field.invalid(path, target, "must not start with '..'"))
    return errors


def mode(path: str, value: int) -> list[Cause]:
    return [] if 0 <= value <= 0o777 else [field.invalid(path, value, MODE_PROBLEM)]
