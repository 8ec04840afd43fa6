"""Asking a running scheduler about one pod."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import click

from machinery.process.serving_client import HttpError, request
from nominee.commands.common import serving_port


def explain_running(key: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """What the scheduler's `/debug/explain` says; ClickException when there is none or no such pod."""
    scheduler = options["scheduler"]
    query = urlencode({"pod": key, "nodes": max(options["nodes"], 0)})
    try:
        answer = request(serving_port(options["directory"], scheduler), f"/debug/explain?{query}")
    except HttpError as error:
        raise click.ClickException(str(error)) from None
    if answer.status != 200:
        raise click.ClickException(f"{scheduler} answers {answer.status}: {answer.text.strip()}")
    document: dict[str, Any] = json.loads(answer.text)
    if document["state"] == "unknown" and not document["attempts"]:
        raise click.ClickException(f"{scheduler} knows of no pod {key}")
    return document
