"""The REST front: Kubernetes' HTTP API over the request chain that the gRPC front calls, too.

Start at `request` (one HTTP request), then `target` (paths), `media` (Accept), `bodies` and `options` (what
comes in), `responses`, `answers` and `watching` (what goes out), `own_handlers` (what only REST serves).
Imported when the port is opened, since it brings Starlette.
"""
