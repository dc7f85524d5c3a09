"""`extract_code`: the program in what a model said, whatever it wrapped around it."""

from __future__ import annotations

import re
import textwrap

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from testgrad.agents import extract_code

CASES: dict[str, tuple[str, str]] = {
    "one block": ("Sure!\n```python\nx = 1\n```\nDone.", "x = 1"),
    "an alias of the language": ("```py\nx = 1\n```", "x = 1"),
    "another alias": ("```python3\nx = 1\n```", "x = 1"),
    "a capital letter": ("```Python\nx = 1\n```", "x = 1"),
    "the last of several": ("```python\nx = 1\n```\nBetter:\n```python\nx = 2\n```", "x = 2"),
    "python before bash that follows": (
        "```python\nx = 1\n```\nRun:\n```bash\npytest\n```",
        "x = 1",
    ),
    "python before unlabelled": ("```python\nx = 1\n```\nOutput:\n```\n1\n```", "x = 1"),
    "unlabelled before another language": ("```\nx = 1\n```\n```json\n{}\n```", "x = 1"),
    "another language when there is nothing else": ("```json\n{}\n```", "{}"),
    "an unclosed block": ("Here:\n```python\nx = 1\ny = 2", "x = 1\ny = 2"),
    "a closed block before an unclosed one": ("```python\nx = 1\n```\n```python\nx = ", "x = 1"),
    "unclosed python before closed bash": ("```bash\nls\n```\n```python\nx = 1", "x = 1"),
    "a block that was never closed before the next": (
        "```python\nx = 1\n\n```python\nx = 2\n```",
        "x = 2",
    ),
    "tildes": ("~~~python\nx = 1\n~~~", "x = 1"),
    "backticks inside tildes": ("~~~python\nx = '''\n```\n'''\n~~~", "x = '''\n```\n'''"),
    "a longer fence around shorter ones": (
        "````python\nx = '''\n```python\n1\n```\n'''\n````",
        "x = '''\n```python\n1\n```\n'''",
    ),
    "a deeper fence inside a docstring": (
        '```python\ndef f():\n    """\n    ```\n    f()\n    ```\n    """\n```',
        'def f():\n    """\n    ```\n    f()\n    ```\n    """',
    ),
    "a block inside a markdown block": (
        "```markdown\n# Answer\n```python\nx = 1\n```\n```",
        "x = 1",
    ),
    "an indented block in a list": (
        "1. Do:\n\n   ```python\n   if x:\n       y\n   ```\n",
        "if x:\n    y",
    ),
    "a fence after a list marker": ("- ```python\n  x = 1\n  ```", "x = 1"),
    "a closing fence that is longer": ("```python\nx = 1\n`````", "x = 1"),
    "a title in the info string": ('```python title="a.py"\nx = 1\n```', "x = 1"),
    "attributes in the info string": ("```{.python .numberLines}\nx = 1\n```", "x = 1"),
    "a file name in the info string": ("```python:src/a.py\nx = 1\n```", "x = 1"),
    "a blank before the info string": ("``` python\nx = 1\n```", "x = 1"),
    "an empty block is passed over": ("```python\nx = 1\n```\n```python\n```", "x = 1"),
    "only an empty block": ("```python\n```", ""),
    "windows line ends": ("Hi\r\n```python\r\nx = 1\r\ny = 2\r\n```\r\n", "x = 1\ny = 2"),
    "blank lines inside are kept": ("```python\n\nx = 1\n\n```", "\nx = 1\n"),
    "three backticks in a line of prose": ("Use ```x``` here.\n```python\nx = 1\n```", "x = 1"),
    "no fence": ("x = 1\ny = 2\n", "x = 1\ny = 2"),
    "prose around code without a fence": (
        "Here is the function you want:\n\ndef f(x):\n    return x\n\nIt returns x!",
        "def f(x):\n    return x",
    ),
    "prose alone": ("I can't do that, sorry.", "I can't do that, sorry."),
    "thinking before the answer": (
        "<think>\n```python\nx = 1\n```\n</think>\n```python\nx = 2\n```",
        "x = 2",
    ),
    "thinking after the answer": (
        "```python\nx = 2\n```\n<think>or\n```python\nx = 1\n```",
        "x = 2",
    ),
    "an unclosed fence in the thinking": ("<think>\n```python\nx =\n</think>\nx = 2", "x = 2"),
    "a lone end of thinking": (
        "Let me see ```python\nx = 1\n</think>\n```python\nx = 2\n```",
        "x = 2",
    ),
    "thinking that never ends": ("<think>so\n```python\nx = 1\n```\nbut", "x = 1"),
    "thinking and then no fence": ("<think>hm</think>\n\nx = 2\n", "x = 2"),
    "other words for thinking": ("<reasoning>x = 1</reasoning>\nx = 2", "x = 2"),
    "a think tag inside the code": (
        "```python\nx = '<think>'\ny = '</think>'\n```",
        "x = '<think>'\ny = '</think>'",
    ),
    "nothing": ("", ""),
}


@pytest.mark.parametrize("case", CASES)
def test_takes(case: str) -> None:
    text, expected = CASES[case]
    assert extract_code(text) == expected


@pytest.mark.parametrize(
    ("language", "label"),
    [
        ("rust", "rs"),
        ("rust", "rust,ignore"),
        ("javascript", "js"),
        ("js", "javascript"),
        ("typescript", "ts"),
        ("go", "golang"),
        ("cpp", "c++"),
        ("c++", "cpp"),
        ("bash", "sh"),
        ("java", "java"),
        ("Haskell", "haskell"),
    ],
)
def test_knows_a_language_by_its_other_names(language: str, label: str) -> None:
    text = f"```python\nno\n```\n```{label}\nyes\n```\n```text\nno\n```"
    assert extract_code(text, language) == "yes"


def test_without_a_fence_other_languages_come_back_as_they_are() -> None:
    assert extract_code("Well:\nfn main() {}\n", "rust") == "Well:\nfn main() {}"


@given(st.text())
def test_no_text_makes_it_raise(text: str) -> None:
    assert isinstance(extract_code(text), str)


MARKS = st.sampled_from(
    [
        "```",
        "````",
        "~~~",
        "python",
        "\n",
        "\r\n",
        "<think>",
        "</think>",
        "  ",
        "- ",
        "x = 1",
        "`",
        "markdown",
    ]
)


@given(st.lists(MARKS, max_size=30).map("".join), st.sampled_from(["python", "rust", ""]))
def test_no_mix_of_marks_makes_it_raise(text: str, language: str) -> None:
    assert isinstance(extract_code(text, language), str)


LINES = st.lists(
    st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=20)
)


@given(LINES, st.sampled_from("`~"), st.sampled_from(["", "python", "py"]), st.text("ab .\n"))
def test_code_in_a_fence_longer_than_its_own_comes_back_exactly(
    lines: list[str], mark: str, label: str, prose: str
) -> None:
    code = "\n".join(lines)
    assume(code.strip())
    assume(not re.search(r"</(think|thinking|thought|reasoning)>", code, re.IGNORECASE))
    longest = max((len(run) for run in re.findall(f"{mark}+", code)), default=0)
    fence = mark * max(3, longest + 1)
    assert extract_code(f"{prose}\n{fence}{label}\n{code}\n{fence}\n{prose}") == code


@given(st.integers(1, 8))
def test_an_indented_fence_takes_its_indentation_off_the_code(columns: int) -> None:
    code = "if x:\n    y = 1\n\nz = 2"
    block = textwrap.indent(f"```python\n{code}\n```", " " * columns)
    assert extract_code(f"Like this:\n{block}\n") == code
