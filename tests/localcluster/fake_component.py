"""A stand-in for a component, to exercise process handling with real signals: announces itself and serves.

usage: fake_component.py DIR NAME [ignore-term] [never-ready] [refuse] [--check-options]
"""

from __future__ import annotations

import http.server
import json
import os
import signal
import sys
from pathlib import Path
from types import FrameType


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(503 if "never-ready" in sys.argv else 200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


def main() -> None:
    directory, name, *behaviour = Path(sys.argv[1]), *sys.argv[2:]
    if "refuse" in behaviour:
        print("no such option: --frobnicate", file=sys.stderr)
        sys.exit(2)
    if "--check-options" in behaviour:
        return

    def terminate(_number: int, _frame: FrameType | None) -> None:
        with (directory / "order").open("a") as order:
            order.write(name + "\n")
        if "ignore-term" not in behaviour:
            sys.exit(0)

    signal.signal(signal.SIGTERM, terminate)
    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    run_file = directory / "run" / f"{name}.json"
    temporary = run_file.with_suffix(".tmp")
    address = f"127.0.0.1:{server.server_address[1]}"
    temporary.write_text(
        json.dumps({"component": name, "name": name, "pid": os.getpid(), "http": address, "grpc": address})
    )
    temporary.replace(run_file)
    server.serve_forever()


if __name__ == "__main__":
    main()
