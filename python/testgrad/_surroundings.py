"""What a test sets up around a call: environment, current directory, seeds, and files.

Both sides of a mirror use it (`_mirror.py`, `_mirrored.py`). Files cross in directories for
temporary files that the test has made known to the candidate, as an argument or as the current
directory; of what the candidate writes there nothing that could run comes back. Standard library
only, Python 3.8 or later.
"""

from __future__ import annotations

import logging
import os
import random
import stat
from contextlib import suppress
from pathlib import PurePath
from typing import Any

MOST_FILES = 2_000
MOST_BYTES = 32 << 20
# What a test or its tools might run instead of read.
RUNNABLE = (
    *(".py", ".pyc", ".pyo", ".pyd", ".pyw", ".pth", ".so", ".sh", ".bash", ".zip", ".egg", ".whl"),
    *(".pkl", ".pickle", ".joblib", ".dill", ".ini", ".cfg", ".toml"),
)


class Files:
    """The files below some directories, and which of them the other side has not seen yet."""

    def __init__(self) -> None:
        self.roots: list[str] = []
        self.seen: dict[str, tuple[int, int]] = {}

    def add(self, root: str) -> bool:
        """Watch a directory or file; whether that is new."""
        if root in self.roots:
            return False
        self.roots.append(root)
        return True

    def news(self) -> list[tuple[str, bytes | None, bool]]:
        """What has changed since it was last asked for: paths, contents, and whether it is gone.

        A directory has no content.
        """
        found: list[tuple[str, bytes | None, bool]] = []
        now: dict[str, tuple[int, int]] = {}
        left = MOST_BYTES
        for root in self.roots:
            for path in self._below(root):
                try:
                    about = os.lstat(path)
                except OSError:
                    continue
                is_directory = stat.S_ISDIR(about.st_mode)
                if not is_directory and not stat.S_ISREG(about.st_mode):
                    continue
                now[path] = (0, 0) if is_directory else (about.st_mtime_ns, about.st_size)
                if self.seen.get(path) == now[path]:
                    continue
                left -= about.st_size
                if left < 0 or len(now) > MOST_FILES:
                    raise ValueError(
                        "the files of the test are more than can be shown to a candidate"
                    )
                found.append((path, None if is_directory else _read(path), False))
        found += [(path, None, True) for path in self.seen if path not in now]
        self.seen = now
        return found

    def _below(self, root: str) -> list[str]:
        paths = [root]
        for path, directories, files in os.walk(root):
            paths += [os.path.join(path, name) for name in (*directories, *files)]  # noqa: PTH118
            if len(paths) > MOST_FILES:
                break
        return paths

    def apply(self, news: Any, *, is_trusted: bool) -> None:
        """Make the same changes here."""
        for path, body, is_gone in news:
            if not self._is_inside(path) or (not is_trusted and path.lower().endswith(RUNNABLE)):
                continue
            with suppress(OSError):
                if is_gone:
                    (os.rmdir if os.path.isdir(path) else os.unlink)(path)  # noqa: PTH112
                    self.seen.pop(path, None)
                    continue
                if body is None:
                    os.makedirs(path, exist_ok=True)  # noqa: PTH103
                    self.seen[path] = (0, 0)
                    continue
                os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
                _write(path, body)
                about = os.lstat(path)
                self.seen[path] = about.st_mtime_ns, about.st_size

    def _is_inside(self, path: str) -> bool:
        is_clean = os.path.normpath(path) == path and os.path.realpath(path) == path
        return is_clean and any(path == root or path.startswith(root + "/") for root in self.roots)


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        parts: list[bytes] = []
        while True:
            part = os.read(descriptor, 1 << 20)
            if not part:
                return b"".join(parts)
            parts.append(part)
    finally:
        os.close(descriptor)


def _write(path: str, body: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o644)
    try:
        while body:
            body = body[os.write(descriptor, body) :]
    finally:
        os.close(descriptor)


def levels_of_loggers() -> dict[str, int]:
    """The levels that loggers have of their own, by their names; the root's is ""."""
    levels = {"": logging.root.level}
    for name, logger in logging.root.manager.loggerDict.items():
        level = getattr(logger, "level", 0)
        if level:
            levels[name] = level
    return levels


class Watch:
    """The judge's side: what has changed around the candidate since it was last told."""

    def __init__(self) -> None:
        self.temporary = os.path.realpath(os.environ["TMPDIR"]) + "/"
        self.first_cwd = os.getcwd()  # noqa: PTH109
        self.first_env = dict(os.environ)
        self._data = getattr(os.environ, "_data", None)
        self._seed, self._chdir = random.seed, os.chdir
        self.has_moved = False
        self.first_levels = levels_of_loggers()
        self.reset()

    def reset(self) -> None:
        """A new process of the candidate knows of nothing."""
        self.cwd = self.first_cwd
        self.env = self.first_env
        self._env_data: Any = None
        self.files = Files()
        self.seed: tuple[Any, ...] | None = None
        self.levels = self.first_levels

    def seeded(self, *args: Any, **kwargs: Any) -> None:
        """Stand in for `random.seed`: the candidate's is set, too."""
        self._seed(*args, **kwargs)
        value = args[0] if args else kwargs.get("a")
        if isinstance(value, (int, float, str, bytes, type(None))):
            self.seed = (value,)

    def news(self, fields: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """What the candidate is to be told before a call with these arguments; None for nothing."""
        is_new = False
        for value in fields:
            kind = type(value)
            if kind is tuple or kind is dict:
                for part in value.values() if kind is dict else value:
                    if type(part) is str or isinstance(part, PurePath):
                        is_new |= self._shows(part)
        env: dict[str, str | None] = {}
        if self._data != self._env_data:
            env = self._env_news()
        cwd = None
        if self.has_moved:
            cwd = self._moved()
            is_new |= cwd is not None and cwd.startswith(self.temporary) and self.files.add(cwd)
        seed, self.seed = self.seed, None
        files = self.files.news() if self.files.roots else []
        levels = {}
        if self.levels != (now := levels_of_loggers()):
            levels, self.levels = now, now
        if not (env or cwd or seed or files or is_new or levels):
            return None
        return env, cwd, seed, files, list(self.files.roots), levels

    def moved(self, path: Any) -> None:
        """Stand in for `os.chdir`."""
        self._chdir(path)
        self.has_moved = True

    def _moved(self) -> str | None:
        try:
            here = os.getcwd()  # noqa: PTH109
        except OSError:
            return None
        self.has_moved = here != self.first_cwd  # which a new process is to be told
        if here == self.cwd:
            return None
        self.cwd = here
        return here

    def _env_news(self) -> dict[str, str | None]:
        now = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "TESTGRAD_"))}
        before = self.env
        news: dict[str, str | None] = {k: v for k, v in now.items() if before.get(k) != v}
        news.update((k, None) for k in before if k not in now and not k.startswith("PYTEST_"))
        self.env = now
        self._env_data = dict(self._data) if self._data is not None else None
        return news

    def _shows(self, value: Any) -> bool:
        """Whether an argument is a place for temporary files that is new to the candidate."""
        path = str(value)
        if not path.startswith(self.temporary) or "\0" in path:
            return False
        parts = path[len(self.temporary) :].split("/")
        depth = 3 if parts[0].startswith("pytest-of-") else 1
        if ".." in parts or len(parts) < depth:
            return False
        return self.files.add(self.temporary + "/".join(parts[:depth]))


class Place:
    """The candidate's side: what it was told last, and what it has done to the files."""

    def __init__(self) -> None:
        self.files = Files()

    def settle(self, env: Any, cwd: Any, seed: Any, files: Any, roots: Any, levels: Any) -> None:
        """Take on what the judge has told."""
        for name, level in levels.items():
            logging.getLogger(name or None).setLevel(level)
        for name, value in env.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        for root in roots:
            self.files.add(root)
            os.makedirs(os.path.dirname(root), exist_ok=True)  # noqa: PTH103, PTH120
        self.files.apply(files, is_trusted=True)
        if cwd is not None:
            os.makedirs(cwd, exist_ok=True)  # noqa: PTH103
            os.chdir(cwd)
        if seed is not None:
            random.seed(*seed)

    def news(self) -> Any:
        """What has become of the files since the judge was last told."""
        return self.files.news() if self.files.roots else ()
