"""An agent that is a command: any command-line coding agent, or any script."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal

from testgrad.agents.extract import extract_code

if TYPE_CHECKING:
    from testgrad import FeedbackEntry

_PLACEHOLDER = "{prompt}"
_TAIL_CHARS = 2000
_MOMENT_S = 0.02


class CommandFailed(RuntimeError):
    """The command could not be started, ended with an error, ran too long, or left no code.

    Attributes:
        exit_code: its exit code, negative for a signal; None when there is none.
        stderr: the end of what it wrote to standard error.
    """

    def __init__(self, message: str, *, exit_code: int | None = None, stderr: str = "") -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.stderr = stderr


class CommandAgent:
    """Asks a command for the next program.

    The prompt is the task, then the last program (where the command cannot read it from a file)
    and the feedback on it. Each call starts the command in a process group of its own; the group
    is killed when the call ends, also by a timeout or Ctrl-C, so nothing it started stays behind.
    Without `cwd` it runs in a fresh temporary directory that is removed afterwards.

    Args:
        argv: program and arguments; no shell. With ``prompt="argument"`` the text ``{prompt}``
            in an argument is replaced by the prompt.
        prompt: how the command gets the prompt.
        code: where the answer comes from: standard output through `extract_code`, or a file in
            the temporary directory that holds the last program and that the command edits.
        file: name of that file, relative to the temporary directory.
        language: language of the program, for `extract_code`.
        initial: what the file holds before the first answer; not written when empty.
        timeout_s: wall time of one call, in seconds.
        env: the whole environment of the command; None is that of this process.
        cwd: directory to run in; only with ``code="stdout"``.
        max_chars: longest feedback in the prompt, in characters.

    Raises:
        CommandFailed: from a call, when there is no answer; with the exit code and the end of
            standard error.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        prompt: Literal["stdin", "argument"] = "stdin",
        code: Literal["stdout", "file"] = "stdout",
        file: str = "solution.py",
        language: str = "python",
        initial: str = "",
        timeout_s: float = 600.0,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        max_chars: int = 8000,
    ) -> None:
        if isinstance(argv, str) or not argv:
            raise TypeError(f"argv must be a non-empty sequence of str, got {argv!r}")
        if prompt not in ("stdin", "argument"):
            raise ValueError(f'prompt must be "stdin" or "argument", got {prompt!r}')
        if code not in ("stdout", "file"):
            raise ValueError(f'code must be "stdout" or "file", got {code!r}')
        if prompt == "argument" and not any(_PLACEHOLDER in part for part in argv):
            raise ValueError('prompt="argument" needs "{prompt}" in an argument of argv')
        if not timeout_s > 0:
            raise ValueError(f"timeout_s must be above 0, got {timeout_s}")
        if code == "file" and cwd is not None:
            raise ValueError(
                'cwd cannot be given with code="file": the command runs beside the file'
            )
        if Path(file).is_absolute() or ".." in Path(file).parts or not Path(file).name:
            raise ValueError(f"file must be a path inside the temporary directory, got {file!r}")
        self._argv = tuple(argv)
        self._prompt, self._code = prompt, code
        self._file, self._language, self._initial = file, language, initial
        self._timeout_s, self._max_chars = timeout_s, max_chars
        self._env = None if env is None else dict(env)
        self._cwd = cwd

    def __call__(self, history: Sequence[FeedbackEntry], task: object = None) -> str:
        """Run the command once and return the program it answers with."""
        prompt = self._prompt_for(history, task)
        with tempfile.TemporaryDirectory(
            prefix="testgrad-agent-", ignore_cleanup_errors=True
        ) as folder:
            path = Path(folder, self._file)
            path.parent.mkdir(parents=True, exist_ok=True)
            last = history[-1].submission.code if history else self._initial
            if self._code == "file" and (history or last):
                path.write_text(last, encoding="utf-8")
            output = self._run(prompt, self._cwd or folder)
            if self._code == "stdout":
                return extract_code(output, self._language)
            try:
                return path.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise CommandFailed(
                    f"{self._argv[0]}: ended well but left no readable {self._file}: {error}",
                    exit_code=0,
                ) from error

    def _prompt_for(self, history: Sequence[FeedbackEntry], task: object) -> str:
        parts = [] if task is None else [str(task)]
        if history:
            entry = history[-1]
            if self._code == "stdout":
                parts.append(
                    f"Your last program:\n\n{fenced(entry.submission.code, self._language)}"
                )
            parts.append(entry.to_prompt(max_chars=self._max_chars))
        return "\n\n".join(parts)

    def _run(self, prompt: str, folder: str | os.PathLike[str]) -> str:
        argv = list(self._argv)
        if self._prompt == "argument":
            clean = prompt.replace("\0", "")
            argv = [part.replace(_PLACEHOLDER, clean) for part in argv]
        # Files, not pipes: a process that the command leaves in the background cannot keep us.
        with (
            tempfile.TemporaryFile() as stdin,
            tempfile.TemporaryFile() as stdout,
            tempfile.TemporaryFile() as stderr,
        ):
            if self._prompt == "stdin":
                stdin.write(prompt.encode(errors="replace"))
                stdin.seek(0)
            exit_code = self._wait(argv, folder, stdin, stdout, stderr)
            tail = _read(stderr)[-_TAIL_CHARS:]
            if exit_code is None:
                message = f"{argv[0]}: no answer within {self._timeout_s:g} s, killed"
                raise CommandFailed(_with_tail(message, tail), stderr=tail)
            if exit_code != 0:
                message = f"{argv[0]}: exit code {exit_code}"
                raise CommandFailed(_with_tail(message, tail), exit_code=exit_code, stderr=tail)
            return _read(stdout)

    def _wait(
        self,
        argv: list[str],
        folder: str | os.PathLike[str],
        stdin: IO[bytes],
        stdout: IO[bytes],
        stderr: IO[bytes],
    ) -> int | None:
        """Exit code of the command; None when its time was up."""
        try:
            process = subprocess.Popen(
                argv,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                cwd=folder,
                env=self._env,
                start_new_session=True,
            )
        except OSError as error:
            raise CommandFailed(f"{argv[0]}: cannot be started: {error}") from error
        give_up = time.monotonic() + self._timeout_s
        try:
            # After Ctrl-C, Python waits for the child as long as it was told to, at most a quarter
            # of a second: so it is told to wait for moments.
            while (left := give_up - time.monotonic()) > 0:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return process.wait(timeout=min(left, _MOMENT_S))
            return None
        finally:
            _kill_group(process)


def fenced(code: str, language: str) -> str:
    """Code in a Markdown fence that is longer than any run of backticks in it."""
    fence = "```"
    while fence in code:
        fence += "`"
    return f"{fence}{language}\n{code.rstrip()}\n{fence}"


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # nobody is left in the group
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _read(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode(errors="replace")


def _with_tail(message: str, tail: str) -> str:
    return f"{message}; standard error ends with:\n{tail.rstrip()}" if tail.strip() else message
