"""What runs below a process, seen from outside of any sandbox."""

import time
from collections.abc import Callable
from pathlib import Path

LIMIT_S = 60.0

# What a candidate does to be seen: nothing that it writes leaves the sandbox, but its name does.
NAME_ITSELF = "import ctypes\ndef name_itself(name): ctypes.CDLL(None).prctl(15, name.encode())\n"


def below(root: int) -> list[int]:
    """The living processes that descend from one."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").iterdir():
        fields = _fields(int(path.name)) if path.name.isdigit() else []
        if fields and fields[0] not in "ZX":
            children.setdefault(int(fields[1]), []).append(int(path.name))
    found, places = [], [root]
    while places:
        own = children.get(places.pop(), [])
        found += own
        places += own
    return found


def named(root: int, name: str) -> list[int]:
    """Those that have called themselves so."""
    return [pid for pid in below(root) if _name(pid) == name]


def is_alive(pid: int) -> bool:
    fields = _fields(pid)
    return bool(fields) and fields[0] not in "ZX"


def wait_for(condition: Callable[[], object], limit_s: float = LIMIT_S) -> None:
    """Wait until a callable is true."""
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)


def _fields(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return []


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
