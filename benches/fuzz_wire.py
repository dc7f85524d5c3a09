"""Messages broken at random: what may pass is read by Python without harm, in bounded memory.

`python benches/fuzz_wire.py --seconds 300`
"""

from __future__ import annotations

import argparse
import marshal
import random
import resource
import sys
import time
from typing import Any

from testgrad._testgrad import _is_sound

ATOMS = [
    None,
    True,
    False,
    0,
    -1,
    2**31,
    10**30,
    -(2**62),
    1.5,
    float("nan"),
    1j,
    "",
    "a",
    "\ud800",
]
ATOMS += ["x" * 300, b"", b"\0" * 40, ..., StopIteration]
MARKS = b"NTF.Siglysut([{<>0cRrqfxaAzZI)\x80\xff"
MOST_MIB = 512


def value(random_: random.Random, depth: int) -> Any:
    """Plain data."""
    kind = random_.randrange(9) if depth else 0
    if kind < 4:
        return random_.choice(ATOMS)
    parts = [value(random_, depth - 1) for _ in range(random_.randrange(5))]
    if kind == 4:
        return tuple(parts)
    if kind == 5:
        return parts
    if kind == 6:
        return {str(n): part for n, part in enumerate(parts)}
    return set(range(len(parts))) if kind == 7 else frozenset(str(n) for n in range(len(parts)))


def broken(random_: random.Random, message: bytes) -> bytes:
    """The message with something done to it."""
    data = bytearray(message)
    for _ in range(random_.randrange(1, 5)):
        at = random_.randrange(len(data) + 1)
        what = random_.randrange(6)
        if what == 0 and at < len(data):
            data[at] = random_.randrange(256)
        elif what == 1 and at < len(data):
            data[at] = random_.choice(MARKS)
        elif what == 2:
            del data[at : at + random_.randrange(8)]
        elif what == 3:
            data[at:at] = bytes(random_.randrange(256) for _ in range(random_.randrange(8)))
        elif what == 4:
            data[at : at + 4] = random_.choice([0, 1, 255, 2**31 - 1, 2**32 - 1, 2**16]).to_bytes(
                4, "little"
            )
        else:
            end = random_.randrange(at, len(data) + 1)
            data[at:at] = data[at:end] * random_.randrange(3)
    return bytes(data)


def main() -> int:
    """Try messages for so many seconds; exit code 1 when something is found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    random_ = random.Random(options.seed)
    tried = passed = 0
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        whole = marshal.dumps((0, True, value(random_, 5), ()), 2)
        if not _is_sound(whole):
            print(f"plain data may not pass: {whole!r}")
            return 1
        for _ in range(20):
            message = broken(random_, whole)
            tried += 1
            if not _is_sound(message):
                continue
            passed += 1
            try:
                marshal.loads(message)
            except (ValueError, TypeError, EOFError):
                pass  # which ends the candidate
            except BaseException as error:
                print(f"{message!r}: {error!r}")
                return 1
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"{tried} broken messages, {passed} of them plain data all the same; {used} MiB")
    return 0 if used < MOST_MIB else 1


if __name__ == "__main__":
    sys.exit(main())
