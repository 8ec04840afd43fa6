"""Where the `nominee` command begins."""

from __future__ import annotations

import signal


def main() -> None:
    """Runs the command. While modules are being loaded Ctrl-C just ends it, without a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from nominee.command_group import nominee

    nominee(prog_name="nominee")


if __name__ == "__main__":
    main()
