"""Ask a running scheduler about one pod."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlencode

import click

from nominee.commands.cluster.leader import leading_port
from nominee.machinery.process.serving_port.serving_client import HttpError, request
from nominee.scheduler.explanation.format import LivePodExplanation


def explain_running(pod: str, *, directory: Path, scheduler: str, nodes: int) -> LivePodExplanation:
    """Return the scheduler's explanation of the pod `namespace/name`.

    Raises:
        click.ClickException: the scheduler does not run or does not answer, or the pod does not exist.
    """
    query = urlencode({"pod": pod, "nodes": max(nodes, 0)})
    name, port = leading_port(directory, scheduler)
    try:
        answer = request(port, f"/debug/explain?{query}")
    except HttpError as error:
        raise click.ClickException(str(error)) from None
    if answer.status != 200:
        raise click.ClickException(f"{name} answers {answer.status}: {answer.text.strip()}")
    document: LivePodExplanation = json.loads(answer.text)
    if document["state"] == "Unknown" and not document["attempts"]:
        raise click.ClickException(f"{name} has no pod {pod}")
    return document
