"""Finds the data that lies beside the repository, where it does."""

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"


def shared(*parts: str) -> Path | None:
    """A file or directory of `../shared`, None when it is not there."""
    path = SHARED.joinpath(*parts)
    return path if path.exists() else None


def needs_shared(*parts: str) -> pytest.MarkDecorator:
    """Skips a test, aloud, where `../shared` does not have this."""
    place = "/".join(("..", "shared", *parts))
    return pytest.mark.skipif(shared(*parts) is None, reason=f"{place} is not there")
