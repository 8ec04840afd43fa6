"""Pack the OpenAPI definitions of Kubernetes' releases: `python proto/schemas.py TARGET`.

For `make setup` and the wheel, as compile.py. They come from the package kubernetes-validate, which is needed
here only: it has 108 MB of files, each definition of each release three times. A file `v1.NN.json.gz` has the
definitions of a release by name; there is one for each release that Nominee emulates.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import sys
from pathlib import Path

OLDEST_MINOR = 32
"""machinery/features/gates.py, OLDEST."""


def pack(target: Path) -> None:
    """Write the definitions of each release into a folder."""
    target.mkdir(parents=True, exist_ok=True)
    # The package is not imported: it would import jsonschema.
    package = importlib.util.find_spec("kubernetes_validate")
    if package is None or package.origin is None:
        sys.exit("kubernetes-validate is not installed")
    for release in (Path(package.origin).parent / "kubernetes-json-schema").glob("v1.*-local"):
        name = release.name.removesuffix("-local").rpartition(".")[0]
        if int(name.removeprefix("v1.")) < OLDEST_MINOR:
            continue
        definitions = json.loads((release / "_definitions.json").read_bytes())["$defs"]
        text = json.dumps(definitions, separators=(",", ":"), ensure_ascii=False)
        # No time of packing, so that equal input gives equal files.
        (target / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python proto/schemas.py TARGET")
    pack(Path(sys.argv[1]).resolve())
