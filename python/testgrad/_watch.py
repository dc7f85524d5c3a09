"""Notes what a candidate tries and containment refuses: the attempt, whatever came of it.

An audit hook of the interpreter, in the candidate's own process. So it can be evaded, and what it
says is the candidate's word, but only ever against itself. Standard library only, Python 3.8 or
later.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

MOST = 20
MOST_CHARS = 500
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# What is made or changed at a path: the place of the path among the arguments, and the word for it.
CHANGES = {
    "os.remove": (0, "removes"),
    "os.rename": (0, "renames"),
    "os.truncate": (0, "truncates"),
    "os.mkdir": (0, "makes"),
    "os.rmdir": (0, "removes"),
    "os.chmod": (0, "changes the mode of"),
    "os.chown": (0, "changes the owner of"),
    "os.link": (0, "links to"),
    "os.symlink": (0, "links to"),
    "shutil.rmtree": (0, "removes"),
}
NETWORK = {
    "socket.connect": "connects to",
    "socket.bind": "listens at",
    "socket.sendto": "sends to",
    "socket.sendmsg": "sends to",
}
SECRETS = frozenset({"environ", "mem", "maps", "cmdline", "fd", "root", "cwd"})


class Watch:
    """What is noted of one process of a candidate."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self.said: set[str] = set()
        self.is_busy = False
        self.own = os.getcwd()  # noqa: PTH109
        places = [self.own, os.environ.get("HOME"), os.environ.get("TMPDIR"), "/tmp", "/dev"]
        self.places = tuple(place.rstrip("/") + "/" for place in places if place)
        # Kept here because candidates replace functions of these modules.
        self._getframe = sys._getframe
        self._getpid, self._getppid, self._fsdecode = os.getpid, os.getppid, os.fsdecode
        self._pid = os.getpid()
        self._normpath, self._join = os.path.normpath, os.path.join

    def __call__(self, event: str, args: Any) -> None:
        """Take one event; see the table of audit events in Python's documentation."""
        if event not in EVENTS or self.is_busy or len(self.said) >= MOST:
            return
        self.is_busy = True
        try:
            words = EVENTS[event](self, event, args)
            if words is not None and words not in self.said and self._getpid() == self._pid:
                self.said.add(words)
                self.say(f"{self.where()}{words}"[:MOST_CHARS])
        except Exception:
            return  # nothing that is odd here may be the candidate's trouble
        finally:
            self.is_busy = False

    def where(self) -> str:
        """The candidate's line that does it."""
        frame: Any = self._getframe(2)
        while frame is not None:
            name = frame.f_code.co_filename
            if name.startswith(self.own):
                return f"{name[len(self.own) + 1 :]}, line {frame.f_lineno}: "
            if not name.startswith(("/", "<")):
                return f"{name}, line {frame.f_lineno}: "
            frame = frame.f_back
        return ""

    def path_of(self, path: Any) -> str:
        """A path as text, from the root; "" where it is none."""
        if not isinstance(path, (str, bytes)) or not path:
            return ""
        text = self._fsdecode(path)
        return self._normpath(text if text.startswith("/") else self._join(self.own, text))

    def is_outside(self, path: str) -> bool:
        return bool(path) and not f"{path}/".startswith((*self.places, "/proc/self/"))

    def opened(self, _: str, args: Any) -> str | None:
        path = self.path_of(args[0])
        flags = args[2] if len(args) > 2 and isinstance(args[2], int) else 0
        if flags & WRITES and self.is_outside(path):
            return f"writes {path}"
        if path == "/etc/shadow":
            return f"reads {path}"
        parts = path.split("/")
        if len(parts) > 3 and parts[1] == "proc" and parts[2].isdigit() and parts[3] in SECRETS:
            return None if int(parts[2]) == self._pid else f"reads {path}"
        return None

    def changed(self, event: str, args: Any) -> str | None:
        place, word = CHANGES[event]
        path = self.path_of(args[place])
        return f"{word} {path}" if self.is_outside(path) else None

    def networked(self, event: str, args: Any) -> str | None:
        address = args[1] if len(args) > 1 else None
        if isinstance(address, tuple) and len(address) >= 2:
            return f"{NETWORK[event]} {address[0]}, port {address[1]}"
        if isinstance(address, (str, bytes)):
            name = self._fsdecode(address)
            if name.startswith("\0") or self.is_outside(self.path_of(name)):
                return f"{NETWORK[event]} the socket {name!r}"
        return None

    def looked_up(self, _: str, args: Any) -> str | None:
        host = args[0]
        if host in (None, "", "localhost", b"localhost"):
            return None
        return f"looks up the host {host}"

    def killed(self, _: str, args: Any) -> str | None:
        number = args[0]
        if number in (-1, 1) or (number == self._getppid() and number > 0):
            return f"sends signal {int(args[1])} to process {number}"
        return None


EVENTS: dict[str, Any] = {
    "open": Watch.opened,
    "socket.getaddrinfo": Watch.looked_up,
    "os.kill": Watch.killed,
    "os.killpg": Watch.killed,
    **dict.fromkeys(CHANGES, Watch.changed),
    **dict.fromkeys(NETWORK, Watch.networked),
}


def watch(say: Callable[[str], None]) -> None:
    """Watch this process from now on; `say` gets the words of each attempt."""
    sys.addaudithook(Watch(say))
