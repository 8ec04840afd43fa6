"""The REST front: Kubernetes' HTTP API over the request chain that the gRPC front calls, too.

Start reading at `request.py` (one HTTP request), then `http/target.py` (paths), `http/media.py` (Accept), `http/bodies.py`
and `http/options.py` (decoding), `answers/responses.py`, `answers/documents.py` and `answers/watching.py` (encoding), `own_handlers.py`
(what only REST serves). Imported when the port is opened, since it imports Starlette.
"""
