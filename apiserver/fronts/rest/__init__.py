"""The REST front: Kubernetes' HTTP API over the request chain that the gRPC front calls, too.

Start reading at `request.py` (one HTTP request), then `target.py` (paths), `media.py` (Accept), `bodies.py`
and `options.py` (decoding), `responses.py`, `answers.py` and `watching.py` (encoding), `own_handlers.py`
(what only REST serves). Imported when the port is opened, since it imports Starlette.
"""
