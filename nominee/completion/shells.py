"""Click's completion scripts, for values that contain `=`.

Bash ends a word at `=`: for `scheduler=Gate` it passes and replaces only `Gate`. The script therefore passes
the whole line, and each candidate is cut where bash starts its word. Neither bash nor zsh may add a space
after a word that ends with `=`.
"""

from __future__ import annotations

import os

from click.shell_completion import (
    BashComplete,
    CompletionItem,
    ZshComplete,
    add_completion_class,
    split_arg_string,
)

_BASH = """\
%(complete_func)s() {
    local kind value
    COMPREPLY=()
    while IFS=, read -r kind value; do
        case $kind in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain) COMPREPLY+=("$value") ;;
        esac
    done < <(COMP_LINE=$COMP_LINE COMP_POINT=$COMP_POINT COMP_WORDBREAKS=$COMP_WORDBREAKS \\
        %(complete_var)s=bash_complete "$1")
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then
        compopt -o nospace
    fi
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""

_ZSH_ADD = "compadd -U -V unsorted -a completions"
_ZSH_ADD_WITHOUT_SPACE = """\
local -a unfinished=("${(@M)completions:#*=}") finished=("${(@)completions:#*=}")
        (( $#unfinished )) && compadd -U -S '' -V unsorted -a unfinished
        (( $#finished )) && compadd -U -V unsorted -a finished"""


class Bash(BashComplete):
    """Bash, with the whole line as it was typed."""

    source_template = _BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the cursor without the program's name, and the incomplete last word."""
        line = os.environ["COMP_LINE"][: int(os.environ["COMP_POINT"])]
        words = split_arg_string(line)
        self._incomplete = words.pop() if words and not line[-1:].isspace() else ""
        return words[1:], self._incomplete

    def format_completion(self, item: CompletionItem[str]) -> str:
        """Return the candidate from the last character on at which bash breaks words."""
        typed = self._incomplete
        if not item.value.startswith(typed):
            typed = typed.partition("=")[2]  # for `--option=value` the candidate is the value
        breaks = set("=:") & set(os.environ.get("COMP_WORDBREAKS", "=:"))
        begin = max((typed.rfind(each) + 1 for each in breaks), default=0)
        return f"{item.type},{item.value[begin:]}"


class Zsh(ZshComplete):
    """Zsh, without a space after `=`."""

    source_template = ZshComplete.source_template.replace(_ZSH_ADD, _ZSH_ADD_WITHOUT_SPACE)


def register() -> None:
    """Register these scripts in place of click's."""
    add_completion_class(Bash)
    add_completion_class(Zsh)
