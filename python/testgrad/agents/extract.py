"""The program in the text that a model answered with."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

_ALIASES = {
    "py": "python",
    "python3": "python",
    "python2": "python",
    "py3": "python",
    "ipython": "python",
    "rs": "rust",
    "js": "javascript",
    "jsx": "javascript",
    "node": "javascript",
    "mjs": "javascript",
    "ts": "typescript",
    "tsx": "typescript",
    "golang": "go",
    "c++": "cpp",
    "cxx": "cpp",
    "cc": "cpp",
    "sh": "bash",
    "shell": "bash",
    "zsh": "bash",
    "rb": "ruby",
    "cs": "csharp",
    "c#": "csharp",
    "md": "markdown",
}
_FENCE = re.compile(
    r"(?P<indent>[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?)(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>.*)\Z"
)
_OPEN_THINK = re.compile(r"^[ \t]*<(think|thinking|thought|reasoning)>", re.I | re.M)
_CLOSE_THINK = re.compile(r"</(?:think|thinking|thought|reasoning)>", re.I)
_LONE_CLOSE = re.compile(r"^[ \t]*</(?:think|thinking|thought|reasoning)>[ \t]*$", re.I | re.M)
_CODE_START = re.compile(
    r"(?:def|class|async def|import|from|if|for|while|with|try|@)\b|@\w|\w+ = "
)
_MOST_PARSES = 200


@dataclass(slots=True)
class _Block:
    language: str
    fence: str
    indent: int
    is_closed: bool = False
    lines: list[str] = field(default_factory=list)

    @property
    def code(self) -> str:
        return "\n".join(_cut(line, self.indent) for line in self.lines)


def extract_code(text: str, language: str = "python") -> str:
    r"""The program in a model's answer, without the prose and the thinking around it.

    The rule, in this order:

    1. Thinking is cut: from a ``<think>`` that begins a line outside a code block to its
       ``</think>``; everything before a ``</think>`` on a line of its own that nothing opened;
       everything after a ``<think>`` that is never closed, unless nothing else is left.
    2. A fence is three or more backticks or tildes, also indented or after a list marker. Its
       block ends at a fence of the same character, at least as long, without an info string,
       and at most three columns further in. So shorter and deeper fences inside belong to the
       code. A fence that names a language starts a new block even where the one before was
       never closed. Blocks inside a ``markdown`` block count as blocks.
    3. Of the blocks that are not blank the winner is the last closed one in the language; else
       the last closed one without a language; else an unclosed one in the language; else the
       last closed one in another language; else an unclosed one. ``py`` and ``python3`` mean
       ``python``, ``rs`` ``rust``, ``c++`` ``cpp``, and so on; of an info string such as
       ``python title="x"`` or ``{.python}`` the first word counts.
    4. Without any fence it is the text itself, stripped. For Python, when that does not parse,
       it is the part from the first line that looks like code to the last line up to which it
       parses; when there is no such part, the text.

    The lines of a block come back as they are, without the indentation of the fence; CRLF becomes
    LF, and the line end before the closing fence is not part of the code.

    Example:
        >>> extract_code("Sure!\n```python\nx = 1\n```\nDone.")
        'x = 1'
    """
    wanted = _language(language)
    clean = text.replace("\r\n", "\n")
    answer, thinking = _without_thinking(clean)
    blocks = _blocks(answer) or (_blocks(thinking) if not answer.strip() else [])
    chosen = _choose(blocks, wanted)
    if chosen is not None:
        return chosen.code
    bare = answer.strip() or _OPEN_THINK.sub("", thinking).strip()
    return _python_part(bare) if wanted == "python" else bare


def _without_thinking(text: str) -> tuple[str, str]:
    """The answer, and what was cut behind a tag that is never closed."""
    lone = _LONE_CLOSE.search(text)
    if lone is not None and not _OPEN_THINK.search(text, 0, lone.start()):
        text = text[lone.end() :]
    kept: list[str] = []
    rest, position, block = text, 0, None
    while position < len(rest):
        end = rest.find("\n", position)
        end = len(rest) if end < 0 else end
        line = rest[position:end]
        tag = None if block is not None else _OPEN_THINK.search(line)
        if tag is not None:
            kept.append(line[: tag.start()])
            closing = _CLOSE_THINK.search(rest, position + tag.end())
            if closing is None:
                return "".join(kept), rest[position + tag.start() :]
            position = closing.end()
            continue
        block = _next_block(block, line)
        kept.append(rest[position : end + 1])
        position = end + 1
    return "".join(kept), ""


def _next_block(block: _Block | None, line: str) -> _Block | None:
    """The block that is open after a line."""
    fence = _FENCE.match(line)
    if fence is None or not _is_fence(fence):
        return block
    if block is not None and _closes(block, fence):
        return None
    return _opened(fence) if block is None or _reopens(block, fence) else block


def _blocks(text: str) -> list[_Block]:
    found: list[_Block] = []
    stack: list[_Block] = []
    for line in text.split("\n"):
        fence = _FENCE.match(line)
        if fence is not None and _is_fence(fence):
            if stack and _closes(stack[-1], fence):
                stack.pop().is_closed = True
                for outer in stack:
                    outer.lines.append(line)
                continue
            if not stack or _reopens(stack[-1], fence):
                for outer in stack:
                    outer.lines.append(line)
                if stack and stack[-1].language != "markdown":
                    stack.pop()
                stack.append(_opened(fence))
                found.append(stack[-1])
                continue
        for block in stack:
            block.lines.append(line)
    return found


def _is_fence(fence: re.Match[str]) -> bool:
    return not (fence["fence"].startswith("`") and "`" in fence["info"])


def _opened(fence: re.Match[str]) -> _Block:
    return _Block(_language(fence["info"]), fence["fence"], len(fence["indent"].expandtabs(4)))


def _closes(block: _Block, fence: re.Match[str]) -> bool:
    return (
        fence["fence"].startswith(block.fence)
        and not fence["info"].strip()
        and fence["indent"].isspace() | (not fence["indent"])
        and len(fence["indent"].expandtabs(4)) - block.indent <= 3
    )


def _reopens(block: _Block, fence: re.Match[str]) -> bool:
    """Whether a fence inside a block begins another one."""
    named = _language(fence["info"])
    if block.language == "markdown":
        return bool(named)
    depth = len(fence["indent"].expandtabs(4)) - block.indent
    known = named in _ALIASES.values() or named in ("python", "c", "java", "json", "text")
    return known and fence["fence"].startswith(block.fence) and depth <= 3


def _language(info: str) -> str:
    words = re.split(r"[\s,:;{}]+", info.strip().strip("{}").strip().lower())
    name = words[0].lstrip(".") if words else ""
    return _ALIASES.get(name, name)


def _choose(blocks: list[_Block], wanted: str) -> _Block | None:
    full = [block for block in blocks if block.code.strip()]
    closed = [block for block in full if block.is_closed]
    for group in (
        [block for block in closed if block.language == wanted],
        [block for block in closed if not block.language],
        [block for block in full if block.language == wanted],
        closed,
        full,
        blocks,
    ):
        if group:
            return group[-1]
    return None


def _cut(line: str, columns: int) -> str:
    """A line without up to so many columns of leading blanks."""
    column = index = 0
    while index < len(line) and line[index] in " \t" and column < columns:
        column += 1 if line[index] == " " else 4 - column % 4
        index += 1
    return line[index:]


def _python_part(text: str) -> str:
    if not text or _parses(text):
        return text
    lines = text.split("\n")
    start = next((i for i, line in enumerate(lines) if _CODE_START.match(line)), None)
    if start is None:
        return text
    shortest = max(start, len(lines) - _MOST_PARSES)
    for end in range(len(lines), shortest, -1):
        part = "\n".join(lines[start:end]).rstrip()
        if _parses(part):
            return part
    return text


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
