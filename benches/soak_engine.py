"""Thousands of candidates, a tenth of them hostile, while workers are killed: nothing may grow, no
verdict may be wrong. `python benches/soak_engine.py --candidates 20000`
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

from testgrad import (
    FunctionRunner,
    Limits,
    NoVerdict,
    PytestRunner,
    StdioRunner,
    SuiteResult,
    run_many,
)
from testgrad.sandbox import close

LIMITS = Limits(timeout_s=2.0, memory_bytes=128 << 20, output_bytes=1 << 20, processes=32)
BATCH = 500

RIGHT = "def f(x): return x + 1\nif __name__ == '__main__': print(f(int(input())))\n"
WRONG = RIGHT.replace("+", "-")
HOSTILE = {
    "hang": "while True: pass",
    "sleep": "import time; time.sleep(600)",
    "exit": "import os; os._exit(0)",
    "kill": "import os; os.kill(os.getpid(), 9)",
    "kill all": "import os; os.kill(-1, 9)",
    "stop": "import os; os.kill(os.getpid(), 19)",
    "fork bomb": "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
    "memory": "x = []\nwhile True: x.append(bytearray(1 << 22))",
    "output": "import os\nwhile True: os.write(1, b'x' * 65536)",
    "descriptors": "import os\nx = []\nwhile True: x.append(os.open('/dev/null', 0))",
    "files": "for n in range(30_000): open(f'f{n}', 'w')",
    "deep": "import os\nfor n in range(3_000): os.mkdir('d'); os.chdir('d')",
    "locked": "import os\nos.mkdir('d'); os.chmod('d', 0); os.chmod('.', 0); raise SystemExit(3)",
    "daemon": "import os\nif os.fork() == 0: os.execv('/bin/sleep', ['sleep', '600'])\nexit(3)",
    "disk": "f = open('big', 'wb')\nwhile True: f.write(b'x' * (1 << 20)); f.flush()",
    "crash": "import ctypes; ctypes.string_at(0)",
}


def candidates(count: int, share: float, chance: random.Random) -> list[tuple[str, object, bool]]:
    """Code, runner, and whether it must pass."""
    runners = [
        StdioRunner([("1", "2"), ("5", "6")], limits=LIMITS),
        FunctionRunner("f", [((1,), 2), ((5,), 6)], limits=LIMITS),
        PytestRunner(
            {"test_a.py": "from solution import f\ndef test_a(): assert f(1) == 2\n"}, limits=LIMITS
        ),
    ]
    found: list[tuple[str, object, bool]] = []
    for _ in range(count):
        runner = chance.choice(runners)
        if chance.random() < share:
            found.append((chance.choice(list(HOSTILE.values())) + "\n", runner, False))
        else:
            is_right = chance.random() < 0.5
            found.append((RIGHT if is_right else WRONG, runner, is_right))
    return found


def kill_now_and_then(stop: threading.Event, chance: random.Random) -> None:
    """Kill one of this process's children, a worker, at random moments."""
    while not stop.wait(chance.uniform(0.5, 4.0)):
        own = [pid for pid, parent in processes().items() if parent == os.getpid()]
        if own:
            try:
                os.kill(chance.choice(own), signal.SIGKILL)
            except ProcessLookupError:
                continue


def processes() -> dict[int, int]:
    """The parent of every living process."""
    found = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                fields = (path / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if fields[0] not in "ZX":
                found[int(path.name)] = int(fields[1])
    return found


def footprint() -> dict[str, int]:
    """What may not grow."""
    status = Path("/proc/self/status").read_text().split()
    groups = [
        entry
        for place in Path("/sys/fs/cgroup").glob("*/")
        for entry in place.glob(f"**/testgrad-{os.getpid()}-*")
    ]
    return {
        "memory, KiB": int(status[status.index("VmRSS:") + 1]),
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "threads": len(list(Path("/proc/self/task").iterdir())),
        "processes": len(processes()),
        "temporary files": len(list(Path(os.environ.get("TMPDIR", "/tmp")).iterdir())),
        "control groups": len(groups),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--candidates", type=int, default=2_000)
    parser.add_argument("--hostile", type=float, default=0.1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    stop = threading.Event()
    killer = threading.Thread(target=kill_now_and_then, args=(stop, random.Random(1)))
    wrong, without, done, first = 0, 0, 0, None
    began = time.monotonic()
    killer.start()
    try:
        while done < options.candidates:
            batch = candidates(min(BATCH, options.candidates - done), options.hostile, chance)
            suites = run_many([(code, run) for code, run, _ in batch], workers=options.workers)
            for (code, _, must_pass), suite in zip(batch, suites, strict=True):
                if isinstance(suite, NoVerdict):
                    without += 1
                elif isinstance(suite, SuiteResult) and suite.all_passed is not must_pass:
                    wrong += 1
                    print(f"wrong: {code!r}: {list(suite)}", file=sys.stderr)
            done += len(batch)
            now = footprint()
            first = first or now
            print(f"{done} done, {wrong} wrong, {without} without a verdict, {now}", flush=True)
    finally:
        stop.set()
        killer.join()
    close()
    last = footprint()
    left = {name: last[name] - first[name] for name in last}
    print(f"{done} candidates in {time.monotonic() - began:.0f} s; grown by {left}")
    grown = [name for name in left if left[name] > (20_000 if "KiB" in name else 2)]
    return 1 if wrong or grown else 0


if __name__ == "__main__":
    sys.exit(main())
