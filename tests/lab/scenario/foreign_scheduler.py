"""A scheduler that the lab knows as little as the real kube-scheduler: started by its own command line.

It takes kube-scheduler's --config, whose clientConnection names the kubeconfig. It has a state directory of
its own, so that the lab finds no debug pages, metrics and failpoints.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import yaml


def main() -> None:
    """Become the scheduler."""
    (option,) = sys.argv[1:]
    config = Path(option.removeprefix("--config="))
    kubeconfig = Path(yaml.safe_load(config.read_text(encoding="utf-8"))["clientConnection"]["kubeconfig"])
    cluster, own = kubeconfig.parent, kubeconfig.parent / "foreign"
    (own / "run").mkdir(parents=True, exist_ok=True)
    for path in ("run/apiserver.json", "pki"):
        if not (own / path).is_symlink():
            (own / path).symlink_to(cluster / path)
    arguments = ["--dir", str(own), "--config", str(config)]
    os.execv(sys.executable, [sys.executable, "-P", "-m", "nominee.scheduler", *arguments])


if __name__ == "__main__":
    main()
