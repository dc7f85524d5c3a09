"""The examples in README, docs and docstrings run and print what they say."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MODULES = [
    "testgrad._testgrad",
    "testgrad.agents",
    "testgrad.audit",
    "testgrad.errors",
    "testgrad.plot",
    "testgrad.sandbox",
    "testgrad.tasks",
]


def failures_of(test: doctest.DocTest) -> str:
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=report.append, clear_globs=False)
    return "".join(report) if runner.failures else ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_examples_of_a_page_print_what_they_say(page: Path) -> None:
    # The fence that ends a block is no part of its output.
    text = page.read_text().replace("\n```\n", "\n\n")
    test = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    assert failures_of(test) == ""


def docstrings() -> list[tuple[str, str]]:
    found = {}
    for name in MODULES:
        module = importlib.import_module(name)
        for public in getattr(module, "__all__", []) or dir(module):
            thing = getattr(module, public)
            found[f"{name}:{public}"] = getattr(thing, "__doc__", None) or ""
            for member in dir(thing) if isinstance(thing, type) else []:
                if not member.startswith("__"):
                    doc = getattr(getattr(thing, member), "__doc__", None)
                    found[f"{name}:{public}.{member}"] = doc or ""
    return [(name, doc) for name, doc in found.items() if ">>>" in doc]


@pytest.mark.parametrize(("name", "doc"), docstrings(), ids=[n for n, _ in docstrings()])
def test_the_example_of_a_docstring_prints_what_it_says(name: str, doc: str) -> None:
    module = importlib.import_module(name.rpartition(":")[0])
    test = doctest.DocTestParser().get_doctest(doc, dict(vars(module)), name, None, None)
    assert failures_of(test) == ""


def test_readme_names_the_two_commands_that_need_nothing_before_them() -> None:
    text = (ROOT / "README.md").read_text()
    assert "make demo" in text
    assert "make test" in text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    prose = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose)
    assert [link for link in links if not (page.parent / link).exists()] == []
