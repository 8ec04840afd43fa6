"""Each check of the project's style finds its faults, and the project passes them."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.style import cache, report
from tests.style.any_type import find_any
from tests.style.ceilings import lower, over_ceilings, read_ceilings
from tests.style.clauses import find_what_clauses
from tests.style.docstrings import find_docstring_faults
from tests.style.findings import Finding
from tests.style.language import BannedWords, read_banned_words
from tests.style.names import find_participle_names
from tests.style.report import all_findings, findings_in, project_files
from tests.style.sizes import FILE_LINES_MAX, FUNCTION_LINES_MAX, find_long_file, find_long_functions


def test_the_project_is_below_its_ceilings() -> None:
    over = over_ceilings(all_findings(), read_ceilings())
    assert not over, "\n".join(map(str, over))


def test_the_checks_read_code_and_documentation_but_no_recordings() -> None:
    files = project_files()
    assert {"README.md", "Makefile", "machinery/api/kinds.py", "tests/style/test_style.py"} <= set(files)
    assert not [path for path in files if path.startswith("tests/golden/")]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (f"# for {'who' + 'ever'} asks", "who" + "ever"),
        (f"It{'To' + 'ld'} = 1", "to" + "ld"),
        (f"def test_{'no' + 'body'}_knows(): ...", "no" + "body"),
        (f"# there is\n    # and there {'is'}\n    # {'none'}", "is " + "none"),
        (f"the {'Two'}{'Faces'} of it", "two " + "faces"),
        (f"{'two'}_{'faces'}.py", "two " + "faces"),
        (f"GO ITS {'WA' + 'Y'}", "its " + "way"),
    ],
)
def test_a_banned_word_is_found(text: str, word: str) -> None:
    (finding,) = read_banned_words().find("a.py", text)
    assert f"`{word}`" in finding.text


@pytest.mark.parametrize(
    "text",
    [
        "if it is None:",
        "retold stories",
        "antibodysomething",
        "its ways",
        "IS NONE",
        "key_agreement=False",
        "key agreement",
    ],
)
def test_other_words_are_not_found(text: str) -> None:
    assert list(read_banned_words().find("a.py", text)) == []


def test_the_line_of_a_banned_word_is_reported() -> None:
    (finding,) = read_banned_words().find("a.md", f"first\nsecond\nthird {'a' + 'new'}\n")
    assert str(finding).startswith("a.md:3: word:")


def test_long_files_and_functions_are_found() -> None:
    def function(lines: int) -> ast.Module:
        return ast.parse("class C:\n    def f(self):\n" + "        x = 1\n" * (lines - 1))

    assert not list(find_long_file("a.py", "\n" * FILE_LINES_MAX))
    assert list(find_long_file("a.py", "\n" * (FILE_LINES_MAX + 1)))
    assert not list(find_long_functions("a.py", function(FUNCTION_LINES_MAX)))
    (found,) = find_long_functions("a.py", function(FUNCTION_LINES_MAX + 1))
    assert found.line == 2


@pytest.mark.parametrize(
    ("docstring", "good"),
    [
        ("Return the nodes that fit the pod.", True),
        ("Process one event.", True),
        ("Returns the nodes that fit the pod.", False),
        ("The nodes that fit the pod.", False),
        ("Whether the pod fits.", False),
        ("Return the nodes", False),
        ("Return the nodes that\\n    fit the pod.", False),
    ],
)
def test_the_form_of_a_function_s_docstring(docstring: str, good: bool) -> None:
    source = f'def f():\n    """{docstring}"""'.replace("\\n", "\n")
    assert bool(list(find_docstring_faults("a.py", ast.parse(source)))) is not good


def test_definitions_that_need_a_docstring() -> None:
    body = "    x = 1\n" * 6
    source = f"def f():\n{body}\ndef _private():\n{body}\ndef short():\n    x = 1\n"
    (found,) = find_docstring_faults("a.py", ast.parse(source))
    assert found.text == "f has none"


def test_a_method_that_may_be_documented_in_a_base_class_needs_no_docstring() -> None:
    source = 'class C({}):\n    """A class."""\n\n    def f(self):\n' + "        x = 1\n" * 6
    assert not list(find_docstring_faults("a.py", ast.parse(source.format("Base"))))
    assert list(find_docstring_faults("a.py", ast.parse(source.format(""))))


def test_a_property_and_a_class_are_described_by_a_noun() -> None:
    source = 'class C:\n    """A queue."""\n\n    @property\n    def f(self):\n        """The length."""\n'
    assert list(find_docstring_faults("a.py", ast.parse(source))) == []


@pytest.mark.parametrize(
    ("docstring", "good"),
    [
        ("Return the objects to write.", True),
        ("Return what is to be written.", False),
        ("What a handler returns.", False),
        ("Change a cluster, as `--what-if` says.", True),
        ("Return the objects.\\n\\n    It also does what upstream does.", True),
    ],
)
@pytest.mark.parametrize("definition", ["def _f():", "class C:", "async def f(self):"])
def test_a_clause_with_what_stands_for_no_object(definition: str, docstring: str, good: bool) -> None:
    source = f'{definition}\n    """{docstring}"""'.replace("\\n", "\n")
    assert bool(list(find_what_clauses("a.py", ast.parse(source)))) is not good
    assert (
        bool(list(find_what_clauses("a.py", ast.parse(f'"""{docstring.split(chr(92))[0]}"""')))) is not good
    )


@pytest.mark.parametrize(
    "source",
    [
        "def found(): ...",
        "wanted = 1",
        "asked: list[str] = []",
        "class C:\n    chosen: str | None",
        "class C:\n    def __init__(self):\n        self.known, self.x = {}, 1",
    ],
)
def test_a_public_name_that_is_a_participle_is_found(source: str) -> None:
    assert len(list(find_participle_names("a.py", ast.parse(source)))) == 1


@pytest.mark.parametrize(
    "source",
    [
        "def find(): ...",
        "def _found(): ...",
        "def found_pods(): ...",
        "def bound(pod) -> bool: ...",
        "class C:\n    paused: bool = False",
        "class C:\n    def __init__(self):\n        self.closed = False\n        self._known = {}",
        "def f():\n    found = 1",
        "desired = 1\nseed = 2",
        "simulated = False",
    ],
)
def test_nouns_verbs_truth_values_and_local_variables_are_no_participles(source: str) -> None:
    assert not list(find_participle_names("a.py", ast.parse(source)))


def test_only_the_comments_of_the_makefile_are_read() -> None:
    word = "a" + "new"
    text = f"{word}:\n\techo {word}\n# compile all {word}\n"
    (finding,) = findings_in("Makefile", text, read_banned_words())
    assert finding.line == 3


def test_any_is_counted_outside_imports() -> None:
    text = "from typing import Any, cast\n# Any\ndef f(x: Any) -> list[Any]: ...\n"
    assert [found.line for found in find_any("a.py", text)] == [3, 3]


def test_ceilings_only_fall(tmp_path: Path) -> None:
    found = [Finding("apiserver/a.py", line, "word", "x") for line in range(3)]
    ceilings = {"word": {"apiserver": 2, "kubelet": 1}}
    assert over_ceilings(found, ceilings) == found
    assert over_ceilings(found[:2], ceilings) == []
    file = tmp_path / "ceilings.toml"
    file.write_text(lower(found, ceilings))
    assert read_ceilings(file) == {"word": {"apiserver": 2}}
    file.write_text(lower(found[:1], ceilings))
    assert read_ceilings(file) == {"word": {"apiserver": 1}}


def test_a_package_is_a_folder_and_below_tests_the_next_one() -> None:
    paths = {"README.md": ".", "a/b/c.py": "a", "tests/a/b/c.py": "tests/a", "tests/conftest.py": "tests"}
    assert {path: Finding(path, 1, "", "").package for path in paths} == paths


def test_a_file_is_checked_again_when_it_or_a_check_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, cache_file = tmp_path / "clone", tmp_path / "build/style.json"
    root.mkdir()
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / "a.md").write_text(f"first\n{'who' + 'ever'}\n")
    (root / "b.md").write_text("nothing\n")
    checked: list[str] = []

    def recorded(path: str, text: str, words: BannedWords) -> Iterator[Finding]:
        checked.append(path)
        return findings_in(path, text, words)

    monkeypatch.setattr(report, "findings_in", recorded)
    first = all_findings(root, cache_file)
    assert [(each.path, each.line) for each in first] == [("a.md", 2)]
    assert all_findings(root, cache_file) == first
    assert checked == ["a.md", "b.md"]
    (root / "b.md").write_text(f"{'no' + 'body'}\n")
    assert [each.path for each in all_findings(root, cache_file)] == ["a.md", "b.md"]
    assert checked == ["a.md", "b.md", "b.md"]
    monkeypatch.setattr(cache, "_checks_digest", lambda: "others")
    assert len(all_findings(root, cache_file)) == 2
    assert checked[3:] == ["a.md", "b.md"]
    cache_file.write_text("[]")
    assert len(all_findings(root, cache_file)) == 2
