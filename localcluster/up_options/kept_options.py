"""The options that a state directory continues with (D/up.json), in the form of `nominee up --config`.

Options of the command line and those of a --config file are stored apart: a new file replaces the earlier one
as a whole, an option replaces the earlier value of that option. What holds for one start only (failpoints,
the timeout) is not stored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from nominee.localcluster.supervisor.directory import write_atomically
from nominee.localcluster.up_options.config_file import Document, UpArguments, document_of, settings_of
from nominee.localcluster.up_options.options import OptionError

_ONE_START = ("failpoints", "timeout")
_FILE = "up.json"


@dataclass(frozen=True, slots=True)
class KeptOptions:
    """The options of a directory's cluster: those of its --config file, and those of the command line.

    `warnings` were printed for this directory and are not repeated.
    """

    config: Document = field(default_factory=dict)
    command_line: Document = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @classmethod
    def read(cls, directory: Path) -> KeptOptions:
        """Return the options of a directory; none if it is new.

        Raises:
            OptionError: the file is damaged.
        """
        path = directory / _FILE
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            return cls(
                dict(document["config"]), dict(document["commandLine"]), tuple(map(str, document["warnings"]))
            )
        except (FileNotFoundError, NotADirectoryError):
            return cls()
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise OptionError(
                "--dir", f"{path} cannot be read ({error!r}); remove it to start with the default options"
            ) from None

    def write(self, directory: Path) -> None:
        """Store the options without those that hold for one start only."""
        document = {
            "config": _lasting(self.config),
            "commandLine": _lasting(self.command_line),
            "warnings": list(self.warnings),
        }
        write_atomically(directory / _FILE, json.dumps(document, indent=2) + "\n")

    def override(self, config: Document | None, command_line: Document) -> KeptOptions:
        """Return the options of the next start: those given now, else those kept.

        `config` is None without --config.
        """
        kept = {key: value for key, value in self.command_line.items() if key not in (config or {})}
        file = self.config if config is None else config
        return replace(self, config=file, command_line={**kept, **command_line})

    def continued(self, config: Document | None, command_line: Document) -> str:
        """Return the kept options that the next start takes, as `nodes: 10, insecure: true`, or ""."""
        kept = {**(self.config if config is None else {}), **self.command_line}
        return ", ".join(
            f"{key}: {_flow(value)}"
            for key, value in kept.items()
            if key not in command_line and key not in (config or {})
        )

    def settings(self, directory: Path, chosen: UpArguments) -> UpArguments:
        """Return the arguments of `UpOptions`; options of the command line override the file's.

        `chosen` are those of this command line, which need not be read again.

        Raises:
            OptionError: a kept value is wrong, or a file is gone.
        """
        path = directory / _FILE
        unset = {key for key, value in self.command_line.items() if value == ""}
        read_already = document_of(chosen).keys()
        config = {key: value for key, value in self.config.items() if key not in unset}
        command_line = {
            key: value for key, value in self.command_line.items() if key not in unset | read_already
        }
        try:
            return _merged(settings_of(config, path), {**settings_of(command_line, path), **chosen})
        except OptionError as error:
            raise OptionError(
                "--dir", f"{error.message}; give this option, or change or remove {path}"
            ) from None


def _merged(config: UpArguments, command_line: UpArguments) -> UpArguments:
    """Return the settings of a --config file with those of the command line, which come later."""
    merged = {**config, **command_line}
    for name in ("replicas", "versions"):
        merged[name] = {**config.get(name, {}), **command_line.get(name, {})}
    gates = dict(config.get("gates", {}))
    for component, own in command_line.get("gates", {}).items():
        gates[component] = {**gates.get(component, {}), **own}
    merged["gates"] = gates
    for name in ("failpoints", "arguments"):
        texts = dict(config.get(name, {}))
        for component, added in command_line.get(name, {}).items():
            texts[component] = [*texts.get(component, ()), *added]
        merged[name] = texts
    return merged


def _lasting(document: Document) -> Document:
    return {key: value for key, value in document.items() if key not in _ONE_START}


def _flow(value: object) -> str:
    """Return a value as YAML in one line; a key "" is for all components."""
    if isinstance(value, Mapping):
        pairs = (f"{key}: {_flow(each)}" if key else _flow(each) for key, each in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_flow, value))}]"
    return json.dumps(value) if isinstance(value, bool) else str(value)
