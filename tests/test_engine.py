"""Warm workers: who starts and ends them, what survives their death, what holds a candidate."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from processes import NAME_ITSELF, below, is_alive, named, wait_for
from testgrad import (
    CommandRunner,
    FunctionRunner,
    Limits,
    NoVerdict,
    PytestRunner,
    StdioRunner,
    SuiteResult,
)
from testgrad._testgrad import _idle_workers
from testgrad.sandbox import close

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="containment needs Linux")

NAMESPACES = ("user", "pid", "mount", "network", "ipc", "uts")
TESTS = {"test_a.py": "from solution import f\ndef test_a(): assert f(2) == 4\n"}
SQUARE = "def f(x): return x * x\n"
LEVELS = pytest.mark.parametrize("avoid", [(), NAMESPACES], ids=["full", "no namespaces"])


def judged(code: str, output: str = "", **settings: object) -> SuiteResult:
    return StdioRunner([("", output)], **settings)(code)  # type: ignore[arg-type]


def shown(code: str, **settings: object) -> str:
    """What a program prints."""
    said: list[str] = []

    def keep(_: str, output: str, __: str) -> bool:
        said.append(output)
        return True

    suite = StdioRunner([("", "")], checker=keep, **settings)(code)  # type: ignore[arg-type]
    return said[0].strip() if said else f"{suite[0].reason}: {suite[0].message}"


# -- life ------------------------------------------------------------------------------------------


def test_workers_are_shared_by_runners_with_equal_settings() -> None:
    close()
    judged("")
    before = below(os.getpid())
    assert StdioRunner([("1", "1")], compare="exact")("print(input(), end='')").all_passed
    assert FunctionRunner("f", [((2,), 4)])(SQUARE).all_passed
    assert below(os.getpid()) == before
    judged("", limits=Limits(processes=20))
    assert len(below(os.getpid())) == len(before) + 1


def test_close_ends_all_workers_and_the_next_run_starts_new_ones() -> None:
    judged("")
    assert _idle_workers() >= 1
    close()
    assert (_idle_workers(), below(os.getpid())) == (0, [])
    assert judged("print(1)", "1").all_passed


def test_a_worker_that_was_killed_is_replaced() -> None:
    close()
    judged("")
    for pid in below(os.getpid()):
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda pid=pid: not is_alive(pid))
    results = StdioRunner([("", "1")]).run_many(["print(1)", "print(2)", "print(1)"], workers=1)
    verdicts = [result.passed for result in results if isinstance(result, SuiteResult)]
    assert len(verdicts) >= 2
    for result, right in zip(results, (1, 0, 1), strict=True):
        assert isinstance(result, NoVerdict) or result.passed == right


def test_a_worker_killed_in_the_middle_of_a_run_gives_no_verdict() -> None:
    close()
    run = StdioRunner([("", "")], limits=Limits(timeout_s=60.0))

    def kill() -> None:
        wait_for(lambda: named(os.getpid(), "began"))
        (child,) = named(os.getpid(), "began")
        for pid in set(below(os.getpid())) - {child}:
            os.kill(pid, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    with pytest.raises(NoVerdict, match="a worker was lost"):
        run(NAME_ITSELF + "import time\nname_itself('began')\ntime.sleep(600)")
    thread.join()
    assert named(os.getpid(), "began") == []
    assert judged("print(1)", "1").all_passed


def test_orphans_that_die_with_their_program_are_no_trouble() -> None:
    code = """
import os
for _ in range(20):
    if os.fork() == 0:
        if os.fork() == 0: os._exit(0)
        os._exit(0)
print(1)
"""
    suites = StdioRunner([("", "1")] * 5).run_many([code] * 60)
    assert [suite.all_passed for suite in suites] == [True] * 60


def test_a_forked_process_has_workers_of_its_own() -> None:
    run = StdioRunner([("", "1")])
    run("print(1)")
    workers = below(os.getpid())
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if run("print(1)").all_passed else 2
            close()
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert below(os.getpid()) == workers
    assert run("print(1)").all_passed


def test_any_thread_may_call() -> None:
    run = FunctionRunner("f", [((2,), 4)])
    suites: list[SuiteResult] = []
    threads = [threading.Thread(target=lambda: suites.append(run(SQUARE))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [suite.all_passed for suite in suites] == [True] * 8


@pytest.mark.parametrize("end", ["exit", "kill", "close"])
def test_nothing_is_left_when_python_ends(tmp_path: Path, end: str) -> None:
    script = f"""
import sys, testgrad
run = testgrad.StdioRunner([("", "1")])
run.run_many(["print(1)"] * 4, workers=2)
print("ready", flush=True)
sys.stdin.readline()
if {end!r} == "close": testgrad.sandbox.close()
"""
    script = script.replace("import sys, testgrad", "import sys, testgrad, testgrad.sandbox")
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        workers = below(process.pid)
        assert workers
        if end == "kill":
            process.kill()
        else:
            process.stdin.write(b"\n")
            process.stdin.flush()
        process.wait(60)
    wait_for(lambda: not any(map(is_alive, workers)), 10.0)
    assert list(tmp_path.iterdir()) == []


def test_two_hundred_runs_leave_no_descriptor_and_no_file(tmp_path: Path) -> None:
    run = StdioRunner([("1", "1")])
    run("print(1)")
    place = Path("/proc/self/fd")
    before = len(list(place.iterdir()))
    run.run_many(["print(1)", "import os; os._exit(1)", "1/0", "import os; os.fork()"] * 50)
    assert len(list(place.iterdir())) <= before + 4  # a worker more for each core


def test_a_dirty_candidate_leaves_nothing_for_the_next() -> None:
    dirty = """
import os, pathlib, tempfile
for place in (os.getcwd(), tempfile.gettempdir(), str(pathlib.Path.home()), "/dev/shm"):
    try: os.chdir(place)
    except OSError: continue
    for number in range(600):
        try: open(f"file{number}", "w").write("x")
        except OSError: pass
    for _ in range(200):
        try:
            os.mkdir("deep")
            os.chdir("deep")
        except OSError: break
    try: os.chmod(place, 0)
    except OSError: pass
"""
    clean = """
import os, pathlib, tempfile
places = [os.getcwd(), tempfile.gettempdir(), str(pathlib.Path.home())]
print(sorted(name for place in places for name in os.listdir(place)))
"""
    for avoid in ((), NAMESPACES):
        judged(dirty, avoid=avoid)
        assert shown(clean, avoid=avoid) == "['solution.py']"


@LEVELS
def test_a_candidate_leaves_no_note_on_its_directories(avoid: tuple[str, ...]) -> None:
    write = """
import fcntl, os, pathlib, shutil
places = [os.getcwd(), os.environ["TMPDIR"], str(pathlib.Path.home())]
for place in places:
    try: os.setxattr(place, "user.note", b"answer")
    except OSError: pass
    try: fcntl.ioctl(os.open(place, os.O_RDONLY), 0x40086602, b"\\x40\\0\\0\\0")
    except OSError: pass
    os.utime(place, ns=(12_345, 67_890))
pathlib.Path("file").write_text("x")
shutil.copy2("file", "copy")  # which takes extended attributes along where it may
for place in places: os.utime(place, ns=(12_345, 67_890))
print("written")
"""
    read = """
import os, pathlib
places = [os.environ["TMPDIR"], str(pathlib.Path.home())]
print([(os.stat(place).st_mtime_ns, os.listxattr(place)) for place in places])
"""
    assert shown(read, avoid=avoid) == "[(0, []), (0, [])]"
    assert shown(write, avoid=avoid) == "written"
    assert shown(read, avoid=avoid) == "[(0, []), (0, [])]"


# -- containment -----------------------------------------------------------------------------------


@LEVELS
def test_a_suite_says_what_held_its_candidate(avoid: tuple[str, ...]) -> None:
    suite = judged("print(1)", "1", avoid=avoid)
    assert suite.containment is not None
    layers = {layer.name: layer for layer in suite.containment.layers}
    assert layers["seccomp"].status == "enforced"
    if avoid:
        assert suite.containment.level == "partial"
        assert layers["pid"].status != "enforced"
    again = SuiteResult.from_json(suite.to_json())
    assert again.containment == suite.containment


@LEVELS
@pytest.mark.parametrize(
    "code",
    [
        "import socket; socket.create_connection(('127.0.0.1', PORT), 1); print('out')",
        "import socket; s = socket.socket(socket.AF_UNIX); s.connect('\\0NAME'); print('out')",
        "print('out', open('SECRET').read())",
        "print('out', open('/proc/PARENT/environ').read())",
        "print('out', open('/proc/1/environ').read() and os.environ['x'])",
        "open('MARK', 'w').write('x')",
        "os.kill(PARENT, 0); print('out')",
        "os.kill(os.getppid(), 9)",
        "os.kill(os.getppid(), 19)",
    ],
)
def test_a_candidate_cannot_reach_out(tmp_path: Path, code: str, avoid: tuple[str, ...]) -> None:
    import socket

    secret, mark = tmp_path / "secret", tmp_path / "mark"
    secret.write_text("secret")
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as local:
        local.bind(f"\0testgrad-{os.getpid()}")
        local.listen()
        for word, value in {
            "PORT": str(tcp.getsockname()[1]),
            "NAME": f"testgrad-{os.getpid()}",
            "SECRET": str(secret),
            "MARK": str(mark),
            "PARENT": str(os.getpid()),
        }.items():
            code = code.replace(word, value)
        assert "out" not in shown("import os\n" + code, avoid=avoid).split()
    assert not mark.exists()
    assert judged("print(1)", "1", avoid=avoid).all_passed


@LEVELS
def test_the_environment_and_the_home_are_empty(
    monkeypatch: pytest.MonkeyPatch, avoid: tuple[str, ...]
) -> None:
    monkeypatch.setenv("API_KEY", "secret")
    code = "import os; print('API_KEY' in os.environ, os.listdir(os.path.expanduser('~')))"
    assert shown(code, avoid=avoid) == "False []"


@LEVELS
@pytest.mark.slow
def test_memory_is_limited_for_all_processes_together(avoid: tuple[str, ...]) -> None:
    code = (
        "import os, time\nfor _ in range(3): os.fork()\n"
        "block = bytearray(b'x' * (60 << 20))\ntime.sleep(60)\n"
    )
    limits = Limits(memory_bytes=256 << 20, timeout_s=30.0)
    assert judged(code, avoid=avoid, limits=limits)[0].reason == "memory"
    # What only a child of it used is its too.
    child = (
        "import os\nif os.fork() == 0:\n    block = bytearray(b'x' * (400 << 20))\n"
        "    os._exit(0)\nos.wait()\n"
    )
    assert judged(child, avoid=avoid, limits=limits)[0].reason == "memory"


@LEVELS
@pytest.mark.slow
def test_a_fork_bomb_ends_with_its_run(avoid: tuple[str, ...]) -> None:
    code = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass\n"
    (test,) = judged(code, avoid=avoid, limits=Limits(timeout_s=1.0))
    assert test.reason in ("timeout", "memory")
    workers = below(os.getpid())
    assert len(workers) < 20
    assert judged("print(1)", "1", avoid=avoid).all_passed


def test_less_containment_than_required_is_no_verdict() -> None:
    with pytest.raises(NoVerdict, match=r'^"full" is required and does not hold here'):
        judged("", avoid="network", require="full")
    with pytest.raises(NoVerdict, match=r'^"network" is required .*no namespace, but no'):
        judged("", avoid=["network"], require=["network"])
    with pytest.raises(NoVerdict, match=r'^"partial" is required .*level of containment is "weak"'):
        judged("", avoid=["seccomp"])
    assert judged("print(1)", "1", avoid=["seccomp"], require="weak").all_passed


# -- time ------------------------------------------------------------------------------------------


def test_a_hang_costs_its_limit() -> None:
    judged("")
    started = time.monotonic()
    (test,) = judged("while True: pass", limits=Limits(timeout_s=1.0))
    assert test.reason == "timeout"
    assert 1.0 <= time.monotonic() - started < 6.0  # 1.1 on a machine at rest


@pytest.mark.slow
def test_a_busy_machine_changes_no_verdict() -> None:
    busy = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(8 * (os.cpu_count() or 1))
    ]
    try:
        code = "import time\nwhile time.process_time() < 0.3: pass\nprint(1)\n"
        suite = judged(code, "1", limits=Limits(timeout_s=2.0))
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert suite.all_passed, suite[0]


# -- interpreters, commands ------------------------------------------------------------------------


def test_modules_may_be_loaded_before_the_candidate() -> None:
    code = "import sys\nprint('wave' in sys.modules)\n"
    assert shown(code, preload=["wave"]) == "True"
    with pytest.raises(NoVerdict, match="has no nothing_like_this: install it"):
        judged("", preload=["nothing_like_this"])


def test_a_virtual_environment_is_one_interpreter(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    assert shown("import sys; print(sys.prefix)", python=python) == str(tmp_path / "venv")


def test_a_command_judges_by_its_exit_code(tmp_path: Path) -> None:
    run = CommandRunner(
        ["sh", "check.sh"], {"check.sh": "grep -q right answer.txt"}, replaces=["answer.txt"]
    )
    right, wrong = run("right"), run("wrong")
    assert (right.all_passed, right.trust) == (True, "reported")
    assert wrong[0].message == "the process ended with exit code 1"
    forged = run({"answer.txt": "wrong", "check.sh": "exit 0"})
    assert not forged.all_passed
    assert forged.warnings == (
        "of the candidate's files, those of the tests are not used: check.sh",
    )
    with pytest.raises(NoVerdict, match="no_such_program: No such file or directory"):
        CommandRunner(["no_such_program"], {})("x")
    hang = CommandRunner(["sleep", "600"], {}, limits=Limits(timeout_s=0.5))("x")
    assert hang[0].reason == "timeout"


def test_limits_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="timeout_s must be > 0 and at most 1e9, got 0"):
        Limits(timeout_s=0)
    with pytest.raises(ValueError, match="test_timeout_s must be > 0 and at most 1e9, got NaN"):
        Limits(test_timeout_s=float("nan"))
    with pytest.raises(ValueError, match="memory_bytes must be 16777216 to"):
        Limits(memory_bytes=1)
    assert Limits(cpu_s=2).cpu_s == 2.0


def test_tests_used_again_are_compiled_once_and_stay_the_tests() -> None:
    run = PytestRunner(TESTS)
    forged = "__pycache__/test_a.cpython-311-pytest-9.2.0.pyc"
    for _ in range(3):
        assert run(SQUARE).all_passed
        (test,) = run("def f(x): return 5")
        assert test.message == "assert 5 == 4\n +  where 5 = f(2)"
        suite = run({"solution.py": SQUARE, forged: "forged"})
        assert suite.warnings == (
            f"of the candidate's files, tests and configuration are not used: {forged}",
        )
