"""The entry point of the `nominee` command."""

from __future__ import annotations

import os
import signal
import sys

from nominee.localcluster import output

COMPLETE_VARIABLE = "_NOMINEE_COMPLETE"
"""Set where a shell asks for completions (`nominee.completion.shells`)."""


def main() -> None:
    """Run the command. Ctrl-C while modules are imported ends it without a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    output.open_standard_descriptors()
    from nominee.command_group import nominee

    if COMPLETE_VARIABLE in os.environ:
        from nominee.completion import shells

        shells.register()
    try:
        nominee(prog_name="nominee")
    except (OSError, BaseExceptionGroup) as error:
        if not output.is_lost(error):
            raise
        sys.exit(output.report_lost(error))
    finally:
        output.settle()


if __name__ == "__main__":
    main()
