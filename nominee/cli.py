"""Where the `nominee` command begins."""

from __future__ import annotations

import signal
import sys

from nominee import output


def main() -> None:
    """Run the command. While modules are being loaded Ctrl-C just ends it, without a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    output.open_standard_descriptors()
    from nominee.command_group import nominee

    try:
        nominee(prog_name="nominee")
    except (OSError, BaseExceptionGroup) as error:
        if not output.is_lost(error):
            raise
        output.report_lost(error)
        sys.exit(1)
    finally:
        output.settle()


if __name__ == "__main__":
    main()
