"""testgrad's exceptions. A failing program is data; only a failing testgrad raises these."""

from __future__ import annotations

from os import PathLike

__all__ = ["NoVerdict", "StoreError", "TaskError", "TestgradError"]


class TestgradError(Exception):
    """Anything that went wrong in testgrad itself."""

    __test__ = False


class NoVerdict(TestgradError):
    """A candidate could not be judged through no fault of its own; never to be read as reward 0.

    In batches it is a value in the candidate's place, and NaN in arrays.
    """


class StoreError(TestgradError):
    """A file of ours cannot be read or written.

    Attributes:
        path: The file.
        line: The line that is wrong, from 1; None when it is not about a line.
    """

    def __init__(
        self, message: str, *, path: str | PathLike[str] | None = None, line: int | None = None
    ) -> None:
        super().__init__(message)
        self.path = path
        self.line = line


class TaskError(ValueError, TestgradError):
    """A file of tasks, or one task in it, that cannot be used.

    Attributes:
        path: The file or folder.
        line: The line that the task begins on, from 1; None when it is not about a line.
        format: The format that it was read as; None while that was not known.
    """

    def __init__(
        self,
        message: str,
        *,
        path: str | PathLike[str] | None = None,
        line: int | None = None,
        format: str | None = None,  # noqa: A002
    ) -> None:
        super().__init__(message)
        self.path = path
        self.line = line
        self.format = format


class SandboxError(NoVerdict):
    """A sandbox could not be built: says which step the system refused."""
