"""One run of `nominee chaos run` on real processes: `python -m nominee.commands.chaos.run_program JSON`.

It prints its result as JSON. Ctrl-C ends it without a message: the command that started it prints one.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from nominee.commands.chaos.run import one
from nominee.commands.common import end_as_by_ctrl_c
from nominee.localcluster import output


def main(text: str) -> None:
    """Run with the seed and options of a JSON object, and print the result."""
    plan = json.loads(text)
    result = one(
        plan["seed"],
        plan["duration"],
        plan["rate"],
        simulate=False,
        directory=Path(plan["directory"]) if plan["directory"] else None,
        verbose=plan["verbose"],
    )
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    end_as_by_ctrl_c()
    try:
        main(sys.argv[1])
    except KeyboardInterrupt:
        sys.exit(output.INTERRUPTED)
    except (OSError, BaseExceptionGroup) as error:
        if not output.is_lost(error):
            raise
        sys.exit(1)
