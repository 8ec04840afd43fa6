"""An extender as a process of its own: `python -m tests.scheduler.extenders.server`.

Says its port on the first line. PUT /script sets what each verb answers (JSON by verb: `status`, `body`,
`sleep` in seconds); GET /calls returns the bodies that came, by verb.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_script: dict[str, Any] = {}
_calls: list[tuple[str, Any]] = []
_released = threading.Event()  # never set: a call that is to hang waits on it


class Handler(BaseHTTPRequestHandler):
    def do_PUT(self) -> None:  # http.server's name
        _script.clear()
        _script.update(self._body())
        self._answer(200, {})

    def do_GET(self) -> None:
        self._answer(200, _calls)

    def do_POST(self) -> None:
        verb = self.path.rpartition("/")[2]
        _calls.append((verb, self._body()))
        scripted = _script.get(verb, {"status": 404, "body": {}})
        _released.wait(scripted.get("hang_seconds", 0.0))
        self._answer(scripted.get("status", 200), scripted.get("body"))

    def _body(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def _answer(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        return


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()
