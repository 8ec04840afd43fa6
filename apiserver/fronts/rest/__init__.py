"""The REST front: Kubernetes' HTTP API over the same registry as the gRPC front, with no rules of its own.

Read `front.py` first (a request's way), then `target.py` (paths), `media.py` (what is asked for in Accept),
`bodies.py` (what comes in), `answers.py` and `watching.py` (what goes out), `discovery.py`. Imported when the
port is opened, since it brings Starlette.
"""
