"""`PytestRunner` and `run_pytest`: the verdict is plain pytest's, and nothing is left behind."""

import ctypes
import gzip
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from processes import NAME_ITSELF, below, is_alive, named, wait_for
from shared_data import needs_shared, shared
from testgrad import Limits, NoVerdict, PytestRunner, SuiteResult, TestSeverity, run_pytest
from testgrad._testgrad import _cancel_runs
from testgrad.sandbox import close

ADD = {"test_add.py": "from solution import add\ndef test_add(): assert add(1, 2) == 3\n"}
RIGHT = "def add(a, b): return a + b\n"


def said(suite: SuiteResult) -> list[tuple[str, str, str | None]]:
    """Short name, status and reason of each test."""
    return [(test.name.split("::")[-1], test.status.value, test.reason) for test in suite]


def judged(body: str, code: str = "", **settings: object) -> SuiteResult:
    """The suite of one test file against a candidate, in one process."""
    settings = {"isolation": "none", **settings}
    return PytestRunner({"test_a.py": body}, **settings)(code)  # type: ignore[arg-type]


# -- as plain pytest -------------------------------------------------------------------------------


def cases() -> dict[str, dict]:
    path = shared("data", "pytest-cases", "expected.json")
    return json.loads(path.read_text()) if path else {}


ISOLATIONS = pytest.mark.parametrize("isolation", ["process", "none"])


@needs_shared("data", "pytest-cases")
@pytest.mark.slow
@ISOLATIONS
@pytest.mark.parametrize("name", cases())
def test_every_behaviour_of_pytest_is_kept(name: str, isolation: str) -> None:
    expected = cases()[name]
    limit_s = 2.0 if expected["exit_code"] == "timeout" else 30.0
    suite = PytestRunner(
        shared("data", "pytest-cases", name),
        args=expected["args"],
        plugins=expected.get("plugins", []),
        isolation=isolation,
        limits=Limits(timeout_s=limit_s),
    )({})
    got = {test.name: test.status.value for test in suite if "::" in test.name}
    not_run = {name: got.pop(name) for name in expected.get("not_run", [])}
    if "counts" in expected:
        assert {"passed": suite.passed, "failed": suite.failed} == expected["counts"]
        assert expected["outcomes_sample"].items() <= got.items()
    else:
        assert got == expected["outcomes"]
    if expected["session_finished"] and expected["exit_code"] != 2:
        assert set(not_run.values()) <= {"error"}  # else the rest may have run in a fresh process
    files = [test.name for test in suite if "::" not in test.name]
    if expected["exit_code"] in (3, "timeout"):
        assert files in ([], ["test_a.py"])  # the file that could not be imported
    else:
        assert files == expected.get("collection_errors", [])
    assert suite.all_passed == (expected["clean"] and suite.passed > 0)
    if isolation == "none":
        assert suite.trust == "shared"
    else:
        assert suite.trust == (
            "shared" if suite.warnings and "share" in suite.warnings[-1] else "isolated"
        )


RANDOM = {"dnd_character_test.py::DndCharacterTest::test_random_character_is_valid"}


def variants(name: str, every: int) -> list[tuple[dict, str, dict]]:
    """Every n-th task of a file, with each variant's name and what must come out."""
    path = shared("data", "tasks", f"{name}.jsonl.gz")
    if path is None:
        return []
    expected = json.loads(shared("data", "tasks", "expected", f"{name}.json").read_text())
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        tasks = [json.loads(line) for line in lines][::every]
    return [
        (task, variant, expected[task["id"]])
        for task in tasks
        if not expected[task["id"]].get("slow")
        for variant in task["variants"]
    ]


@needs_shared("data", "tasks")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "every"),
    [("humaneval", 16), ("mbpp_100", 10), ("quixbugs", 7), ("exercism_python_60", 6)],
)
@ISOLATIONS
def test_task_suites_come_out_as_recorded(name: str, every: int, isolation: str) -> None:
    for task, variant, expected in variants(name, every):
        files = task["variants"][variant]
        (path,) = files
        module = path.removesuffix(".py").replace("/", ".")
        limits = Limits(timeout_s=60.0, test_timeout_s=2.0)
        run = PytestRunner(task["files"], module=module, isolation=isolation, limits=limits)
        wanted = expected["variants"][variant]
        suite = run(files)
        got = {test.name: test.status.value for test in suite if "::" in test.name}
        for test in suite:
            if test.reason == "timeout" and test.name in wanted.get("timeouts", []):
                got[test.name] = "failed"
        absent = set(wanted.get("not_run", []))
        outcomes = {test: "passed" for test in expected["tests"] if test not in absent}
        outcomes |= wanted.get("not_passed", {})
        differences = {name for name in got | outcomes if got.get(name) != outcomes.get(name)}
        assert differences <= RANDOM, (task["id"], variant)
        assert suite.trust == ("shared" if isolation == "none" else "isolated")
        files_in_error = [test.name for test in suite if test.reason == "collection"]
        assert files_in_error == wanted.get("collection_errors", [])


# -- candidates that hang, crash and leave ---------------------------------------------------------

THREE = """
import solution
def test_1(): pass
def test_2(): solution.act()
def test_3(): pass
"""


def test_a_hanging_test_costs_its_limit_and_the_rest_is_run() -> None:
    code = "def act():\n    while True: pass\n"
    suite = judged(THREE, code, limits=Limits(test_timeout_s=0.3))
    assert said(suite) == [
        ("test_1", "passed", None),
        ("test_2", "error", "timeout"),
        ("test_3", "passed", None),
    ]
    assert suite[1].message == "took longer than 0.3 s, the limit for one test"
    assert suite[1].duration_ms >= 300


def test_a_hanging_test_leaves_those_before_it_and_those_behind_it_in_the_list() -> None:
    suite = judged(THREE, "import time\ndef act(): time.sleep(600)\n", limits=Limits(timeout_s=1.0))
    assert said(suite) == [
        ("test_1", "passed", None),
        ("test_2", "error", "timeout"),
        ("test_3", "error", "not_run"),
    ]
    assert suite.duration_ms < 1500


@pytest.mark.parametrize(
    ("act", "reason", "message"),
    [
        ("os._exit(0)", "crash", "the process ended with exit code 0"),
        ("os.abort()", "crash", "the process was killed by signal 6 (SIGABRT)"),
        ("os.kill(os.getpid(), 9)", "crash", "the process was killed by signal 9 (SIGKILL)"),
        ("ctypes.string_at(0)", "crash", "the process was killed by signal 11 (SIGSEGV)"),
        ("os.killpg(0, 9)", "crash", "the process was killed by signal 9 (SIGKILL)"),
        ("raise_(KeyboardInterrupt)", "interrupted", "KeyboardInterrupt"),
        ("pytest.exit('enough', returncode=0)", "interrupted", "_pytest.outcomes.Exit: enough"),
        ("os.execvp('true', ['true'])", "crash", "the process ended with exit code 0"),
    ],
)
def test_a_test_that_ends_the_process_is_an_error_and_the_rest_is_run(
    act: str, reason: str, message: str
) -> None:
    code = f"import ctypes, os, pytest\ndef raise_(e): raise e\ndef act(): {act}\n"
    suite = judged(THREE, code)
    assert said(suite) == [
        ("test_1", "passed", None),
        ("test_2", "error", reason),
        ("test_3", "passed", None),
    ]
    assert suite[1].message == message


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("def act(:", "collection"),
        ("raise RuntimeError('at import')", "collection"),
        ("exit()", "collection"),
        ("import os; os._exit(0)", "crash"),
        ("raise KeyboardInterrupt", "interrupted"),
        ("while True: pass", "timeout"),
    ],
)
def test_a_candidate_that_cannot_be_imported_is_an_error_of_the_test_file(
    code: str, reason: str
) -> None:
    suite = judged(THREE, code, limits=Limits(timeout_s=1.5 if reason == "timeout" else 10.0))
    assert said(suite) == [("test_a.py", "error", reason)]
    assert suite.pass_rate == 0.0
    assert not suite.all_passed


def test_a_candidate_that_breaks_the_conftest_is_a_problem_and_no_success() -> None:
    tests = {"conftest.py": "import solution\n", "test_a.py": "def test_1(): pass\n"}
    suite = PytestRunner(tests)("no python")
    assert not suite.all_passed
    (problem,) = suite.problems
    assert problem.startswith("pytest could not load a conftest file: ImportError while loading")


def test_a_thread_that_goes_on_does_not_hold_up_the_verdict() -> None:
    code = "import threading, time\n"
    code += "def act(): threading.Thread(target=time.sleep, args=(60,)).start()\n"
    started = time.monotonic()
    assert judged(THREE, code, limits=Limits(timeout_s=30.0)).all_passed
    assert time.monotonic() - started < 10.0


def test_a_test_that_closes_every_descriptor_it_may_know_is_heard() -> None:
    code = "import os\ndef act(): os.closerange(3, 256)\n"
    suite = judged(THREE, code, args=["--capture=no"])  # capturing needs its own
    assert [status for _, status, _ in said(suite)] == ["passed"] * 3


def test_a_fork_that_returns_into_the_session_reports_nothing_twice() -> None:
    suite = judged(THREE, "import os\ndef act(): os.fork()\n", args=["-p", "no:faulthandler"])
    assert [name for name, _, _ in said(suite)] == ["test_1", "test_2", "test_3"]
    assert suite.problems == ()


def test_a_signal_handler_that_raises_while_we_report_loses_nothing() -> None:
    tests = """
import signal, pytest
def handler(*_): raise RuntimeError("late")
@pytest.mark.parametrize("n", range(40))
def test_n(n):
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.0005)
"""
    suite = judged(tests)
    assert suite.total == 40


# -- nothing left behind ---------------------------------------------------------------------------


def test_what_a_candidate_starts_ends_with_it() -> None:
    code = """
import os, signal, time
def daemon(clean):
    reading, writing = os.pipe()
    if os.fork():
        os.close(writing)
        os.read(reading, 1)
        return
    os.setsid()
    if os.fork(): os._exit(0)
    for name in ("SIGTERM", "SIGHUP", "SIGINT"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    os.write(writing, b"x")
    if clean: os.execve("/bin/sleep", ["sleep", "600"], {})
    time.sleep(600)
def act():
    daemon(False)
    daemon(True)
"""
    run = PytestRunner({"test_a.py": THREE})
    run("def act(): pass\n")
    at_rest = set(below(os.getpid()))
    assert run(code).all_passed
    assert set(below(os.getpid())) <= at_rest


def test_nothing_is_left_of_what_was_done_to_the_directories() -> None:
    code = """
import os, pathlib, tempfile
def act():
    root = pathlib.Path.cwd()
    (root / "deep" / "er").mkdir(parents=True)
    (root / "deep" / "er" / "file").touch()
    (root / "deep" / "link").symlink_to("/usr")
    os.chmod(root / "deep" / "er", 0)
    os.chmod(root / "deep", 0)
    os.chmod(root, 0o500)
    (pathlib.Path(tempfile.mkdtemp()) / "file").touch()
    (pathlib.Path.home() / "file").touch()
"""
    look = """
import os, pathlib, tempfile
def act():
    places = [pathlib.Path.cwd(), pathlib.Path(tempfile.gettempdir()), pathlib.Path.home()]
    modes = [oct(place.stat().st_mode & 0o777) for place in places]
    left = {path.name for place in places for path in place.iterdir()}
    assert modes == ["0o700"] * 3
    assert left - {"__pycache__"} == {"solution.py", "test_a.py"}
"""
    run = PytestRunner({"test_a.py": THREE}, isolation="none")
    suite = run(code)
    assert (suite.all_passed, suite.warnings) == (True, ())
    assert [test.message for test in run(look)] == [""] * 3


def test_no_descriptor_of_ours_stays_open() -> None:
    run = PytestRunner(ADD)
    run(RIGHT)
    before = sorted(path.name for path in Path("/proc/self/fd").iterdir())
    run(RIGHT)
    assert sorted(path.name for path in Path("/proc/self/fd").iterdir()) == before


def test_killing_python_kills_the_candidate(tmp_path: Path) -> None:
    code = NAME_ITSELF + "import time\ndef act(): name_itself('began'); time.sleep(600)\n"
    script = f"""
import testgrad
testgrad.PytestRunner({{"test_a.py": {THREE!r}}}, limits=testgrad.Limits(timeout_s=60))({code!r})
"""
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    process = subprocess.Popen([sys.executable, "-c", script], env=env)
    wait_for(lambda: named(process.pid, "began"))
    all_of_it = below(process.pid)
    process.kill()
    process.wait()
    wait_for(lambda: not any(map(is_alive, all_of_it)), 10.0)
    assert list(tmp_path.iterdir()) == []


def test_a_flood_of_output_is_cut() -> None:
    code = """
import os
def act():
    for _ in range(300): os.write(1, b"x" * 100_000)
    os._exit(7)
"""
    suite = judged(THREE, code, args=["-s"], limits=Limits(timeout_s=30.0))
    assert suite[1].message == "the process ended with exit code 7"
    assert len(suite[1].details) < 10_000


def test_a_file_cannot_fill_the_disk() -> None:
    code = """
def act():
    with open("big", "wb") as file:
        for _ in range(400): file.write(bytes(1 << 20))
"""
    suite = judged(THREE, code, limits=Limits(timeout_s=30.0))
    assert suite[1].message == "OSError: [Errno 27] File too large"


FLOOD = """
import os
def act():
    report = max(int(name) for name in os.listdir("/proc/self/fd"))
    for _ in range({count}): os.write(report, {line})
"""


def test_a_flood_of_reports_ends_the_run() -> None:
    code = FLOOD.format(count=3000, line="b'x' * 65_535 + b'\\n'")
    suite = judged(THREE, code, limits=Limits(timeout_s=30.0))
    assert said(suite) == [
        ("test_1", "passed", None),
        ("test_2", "error", "output"),
        ("test_3", "error", "not_run"),
    ]
    assert suite[1].message == "printed or reported more than allowed"


def test_of_a_flood_of_problems_few_are_told() -> None:
    line = '{"kind": "finished", "name": "%d", "status": "passed", "duration_ms": 1}\n'
    suite = judged(THREE, FLOOD.format(count=5000, line=f"({line!r} % _).encode()"))
    assert [status for _, status, _ in said(suite)] == ["passed"] * 3
    assert len(suite.problems) == 101
    assert suite.problems[-1] == "... 4900 more"


def test_a_line_of_the_report_that_is_too_long_is_a_problem() -> None:
    suite = judged(THREE, FLOOD.format(count=1, line="b'x' * (2 << 20) + b'\\n'"))
    assert [status for _, status, _ in said(suite)] == ["passed"] * 3
    assert suite.problems == ("a line of the report that was longer than 1 MiB is left out",)


def test_a_list_of_tests_may_be_long() -> None:
    tests = """
import pytest
@pytest.mark.parametrize("n", range(3000), ids=lambda n: f"{n}-" + "x" * 500)
def test_n(n): pass
"""
    suite = judged(tests, limits=Limits(timeout_s=60.0))
    assert (suite.passed, suite.total, suite.problems) == (3000, 3000, ())


# -- Ctrl-C ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["run(code)", "run.run_many([code] * 4)"])
def test_ctrl_c_returns_at_once(call: str) -> None:
    code = NAME_ITSELF + "def act():\n    name_itself('began')\n    while True: pass\n"
    script = f"""
import time, testgrad
run = testgrad.PytestRunner({{"test_a.py": {THREE!r}}}, limits=testgrad.Limits(timeout_s=60))
code = {code!r}
try: {call}
except KeyboardInterrupt: print(time.monotonic())
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    wait_for(lambda: named(process.pid, "began"))
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=120)
    assert float(out) - sent < 0.5  # 0.1 on a machine at rest


# -- other threads ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_thread_that_keeps_the_interpreter_changes_no_outcome() -> None:
    code = (
        NAME_ITSELF
        + """
import os, time
def act():
    name_itself("began")
    time.sleep(0.5)
    for _ in range(40): os.write(1, b"x" * 65_536)  # more than a pipe holds
"""
    )

    def keep() -> None:
        wait_for(lambda: named(os.getpid(), "began"))
        ctypes.PyDLL(None).sleep(5)  # a call that lets nobody else in

    thread = threading.Thread(target=keep)
    thread.start()
    started = time.monotonic()
    suite = judged(THREE, code, args=["-s"], limits=Limits(timeout_s=4.0))
    assert time.monotonic() - started > 4.0, "the interpreter was not kept long enough"
    thread.join()
    assert [status for _, status, _ in said(suite)] == ["passed"] * 3
    assert suite.duration_ms < 4000


@pytest.mark.parametrize("call", ["one", "many"])
def test_runs_on_other_threads_can_be_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    code = NAME_ITSELF + (
        "import time\ndef act():\n    name_itself('began')\n    while True: time.sleep(1)\n"
    )
    run = PytestRunner({"test_a.py": THREE}, limits=Limits(timeout_s=60.0))
    ends: list[tuple[str, float]] = []

    def work() -> None:
        if call == "one":
            with pytest.raises(NoVerdict) as caught:
                run(code)
            ends.append((str(caught.value), time.monotonic()))
        else:
            first, second = run.run_many([code, code])
            assert str(first) == str(second)
            ends.append((str(first), time.monotonic()))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    wait_for(lambda: len(named(os.getpid(), "began")) >= 2)
    cancelled = time.monotonic()
    _cancel_runs()
    for thread in threads:
        thread.join()
    assert [message for message, _ in ends] == ["interrupted"] * 2
    assert max(end for _, end in ends) - cancelled < 5.0  # 0.1 on a machine at rest
    assert named(os.getpid(), "began") == []
    close()
    assert list(tmp_path.iterdir()) == []
    assert PytestRunner(ADD)(RIGHT).all_passed  # what begins later is not touched


# -- settings --------------------------------------------------------------------------------------


def test_severity_comes_from_markers() -> None:
    tests = """
import pytest
from testgrad_like import Level
@pytest.mark.severity("Critical")
def test_word(): pass
@pytest.mark.severity(level=1)
def test_number(): pass
@pytest.mark.severity(Level.CRITICAL)
def test_member(): pass
@pytest.mark.critical
class TestClass:
    def test_inherits(self): pass
    @pytest.mark.minor
    def test_closest(self): pass
@pytest.mark.major
def test_major(): pass
@pytest.mark.severity("huge")
def test_unknown(): pass
def test_plain(): pass
"""
    level = "import enum\nclass Level(enum.Enum): CRITICAL = 3\n"
    files = {"test_a.py": tests, "testgrad_like.py": level}
    suite = PytestRunner(files, args=["--strict-markers"])({})
    assert suite.all_passed
    assert {test.name.split("::")[-1].removeprefix("test_"): test.severity for test in suite} == {
        "word": TestSeverity.CRITICAL,
        "number": TestSeverity.MINOR,
        "member": TestSeverity.CRITICAL,
        "inherits": TestSeverity.CRITICAL,
        "closest": TestSeverity.MINOR,
        "major": TestSeverity.MAJOR,
        "unknown": TestSeverity.MAJOR,
        "plain": TestSeverity.MAJOR,
    }
    (warning,) = suite.warnings
    assert warning.startswith("test_a.py::test_unknown: unknown severity 'huge', counted as major;")


def test_coverage_is_the_share_of_the_candidates_lines_that_ran() -> None:
    tests = "from solution import sign\ndef test_a(): assert sign(1) == 1\n"
    code = "def sign(x):\n    if x > 0:\n        return 1\n    return -1\n"
    assert judged(tests, code, coverage=True).coverage == 0.75
    assert judged(tests, code).coverage is None
    assert judged(tests, "def sign(:\n", coverage=True).coverage == 0.0


def test_coverage_adds_up_over_processes() -> None:
    tests = """
import os, solution
def test_a(): assert solution.f(1)
def test_b(): os._exit(1)
def test_c(): assert solution.f(0)
"""
    code = "def f(x):\n    if x:\n        return 1\n    return 2\n"
    suite = judged(tests, code, coverage=True)
    assert suite.coverage == 0.75  # the first process took its lines with it
    assert suite.warnings == ("coverage leaves out what ran in a process that was ended",)


def test_the_module_may_be_inside_a_package() -> None:
    tests = {
        "pkg/__init__.py": "",
        "test_a.py": "from pkg.mod import x\ndef test_x(): assert x == 1\n",
    }
    assert PytestRunner(tests, module="pkg.mod")("x = 1").all_passed


def test_several_files_lie_beside_the_tests_and_replace_none() -> None:
    files = {
        "solution.py": "from helper import add\n",
        "helper.py": RIGHT,
        "test_add.py": "def test_add(): pass\n",
        "test_more.py": "def test_more(): pass\n",
        "conftest.py": "raise SystemExit\n",
        "data.txt": "forged",
    }
    suite = PytestRunner({**ADD, "data.txt": "ours"})(files)
    assert [test.name for test in suite] == ["test_add.py::test_add"]
    assert suite.all_passed
    assert suite.warnings == (
        "of the candidate's files, tests and configuration are not used:"
        " test_add.py, test_more.py, conftest.py, data.txt",
    )


def test_a_file_that_would_leave_the_directory_is_a_problem(tmp_path: Path) -> None:
    suite = PytestRunner(ADD)({"solution.py": RIGHT, "../../evil.py": ""})
    assert suite.pass_rate == 1.0
    assert not suite.all_passed
    assert "'../../evil.py'" in suite.problems[0].replace('"', "'")


def test_a_workspace_gives_its_code_and_not_its_tests(tmp_path: Path) -> None:
    (tmp_path / "solution.py").write_text(RIGHT)
    (tmp_path / "test_add.py").write_text("def test_forged(): pass\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --collect-only\n")
    (tmp_path / "link.py").symlink_to("/etc/passwd")
    suite = PytestRunner(ADD)(tmp_path)
    assert said(suite) == [("test_add", "passed", None)]
    assert suite.warnings == (
        "of the candidate's files, tests and configuration are not used: pytest.ini, test_add.py",
        "of the candidate's files, links that lead outside and what cannot be read are left out:"
        " link.py",
    )
    assert PytestRunner(ADD)(tmp_path / "solution.py").all_passed
    suite = PytestRunner(ADD)(tmp_path / "link.py")
    assert said(suite) == [("test_add.py", "error", "collection")]


def test_a_workspace_without_end_is_the_candidates_error(tmp_path: Path) -> None:
    (tmp_path / "solution.py").write_text(RIGHT)
    (tmp_path / "giant").touch()
    os.truncate(tmp_path / "giant", 2 << 30)
    suite = PytestRunner(ADD)(tmp_path)
    assert said(suite) == [("candidate", "error", "disk")]
    assert suite[0].message == "the files of the workspace exceed 1073741824 bytes"
    assert (suite.pass_rate, suite.all_passed) == (0.0, False)


def test_tests_may_be_links(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "helper.py").write_text("three = 3\n")
    text = "from helper import three\nfrom solution import add\n"
    text += "def test_add(): assert add(1, 2) == three\n"
    (tmp_path / "real" / "test_add.py").write_text(text)
    (tmp_path / "tests" / "test_add.py").symlink_to("../real/test_add.py")
    (tmp_path / "tests" / "helper.py").symlink_to("../helper.py")
    (tmp_path / "tests" / "round").symlink_to("../tests")
    suite = PytestRunner(tmp_path / "tests")(RIGHT)
    assert said(suite) == [("test_add", "passed", None)]
    assert suite.warnings == (
        "of the tests, links that lead nowhere or in a circle are left out: round",
    )
    (tmp_path / "test_one.py").symlink_to(tmp_path / "real" / "test_add.py")
    run = PytestRunner(tmp_path / "test_one.py")
    suite = run({"solution.py": RIGHT, "helper.py": "three = 3\n"})
    assert [test.name for test in suite] == ["test_one.py::test_add"]
    assert suite.all_passed


def test_tests_may_be_a_directory_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "test_add.py").write_text(ADD["test_add.py"])
    (tmp_path / "solution.py").write_text("stub")
    (tmp_path / "__pycache__").mkdir()
    for tests in (tmp_path, str(tmp_path), tmp_path / "test_add.py"):
        assert PytestRunner(tests)(RIGHT).all_passed
    assert (tmp_path / "solution.py").read_text() == "stub"


def test_the_environment_is_clean_but_for_what_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEY", "secret")
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    tests = """
import os
def test_env():
    assert os.environ["GIVEN"] == "yes"
    known = {"PATH", "LANG", "TZ", "HOME", "TMPDIR", "GIVEN", "COLUMNS", "LINES"}
    others = {name for name in os.environ if not name.startswith(("PYTHON", "PYTEST", "LC_"))}
    assert others <= known and "PYTHONPATH" not in os.environ
    assert os.environ["HOME"].startswith(os.path.dirname(os.getcwd()))
"""
    suite = judged(tests, env={"GIVEN": "yes"})
    assert suite.all_passed, suite[0].details


def test_configuration_above_the_directory_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --nonsense\n")
    (tmp_path / "conftest.py").write_text("raise RuntimeError\n")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert PytestRunner(ADD)(RIGHT).all_passed


def test_the_names_of_our_own_modules_are_free() -> None:
    tests = {"test_a.py": "from enums import x\ndef test_x(): assert x == 1\n"}
    assert PytestRunner(tests, module="enums")("x = 1").all_passed


def test_results_say_where_they_are_and_what_went_wrong() -> None:
    suite = judged("\n\ndef test_a():\n    print('seen')\n    assert 1 == 2, 'why'\n")
    (test,) = suite
    assert (test.file, test.line) == ("test_a.py", 3)
    assert test.message == "AssertionError: why\nassert 1 == 2"
    assert "assert 1 == 2, 'why'" in test.details
    assert "--- Captured stdout call ---\nseen" in test.details


def test_many_candidates_come_back_in_order() -> None:
    codes = [RIGHT, "def add(a, b): return 0\n", "no python", RIGHT]
    suites = PytestRunner(ADD).run_many(codes, workers=2)
    assert [suite.pass_rate for suite in suites] == [1.0, 0.0, 0.0, 1.0]
    assert PytestRunner(ADD).run_many([]) == []


def test_threads_may_call_at_once() -> None:
    run = PytestRunner(ADD)
    suites: list[SuiteResult] = []
    threads = [threading.Thread(target=lambda: suites.append(run(RIGHT))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [suite.all_passed for suite in suites] == [True] * 4


def test_a_runner_survives_pickling(tmp_path: Path) -> None:
    run = PytestRunner(
        {"sub/test_a.py": ADD["test_add.py"]}, limits=Limits(timeout_s=20.0), env={"A": "b"}
    )
    again = pickle.loads(pickle.dumps(run))
    assert repr(again) == repr(run) == "<PytestRunner of solution by 1 files>"
    assert again(RIGHT).all_passed
    assert pickle.dumps(again) == pickle.dumps(run)


# -- a project's own tests -------------------------------------------------------------------------


def test_a_project_is_run_where_it_is_and_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("x = 1\n")
    (tmp_path / "tests").mkdir()
    test = "import pytest, code\n@pytest.mark.asyncio\nasync def test_a(): assert code.x == 1\n"
    (tmp_path / "tests" / "test_a.py").write_text(test)
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    suite = run_pytest(tmp_path, args=["tests"])
    assert said(suite) == [("test_a", "passed", None)]
    assert sorted(path.name for path in tmp_path.rglob("*")) == [
        "code.py",
        "pytest.ini",
        "test_a.py",
        "tests",
    ]


def test_no_tests_are_no_success_and_worth_a_warning(tmp_path: Path) -> None:
    suite = run_pytest(tmp_path)
    assert (suite.all_passed, suite.warnings) == (False, ("no tests were collected",))


# -- our own failures ------------------------------------------------------------------------------


def test_an_interpreter_that_is_not_there_is_no_verdict() -> None:
    run = PytestRunner(ADD, python="/no/such/python")
    with pytest.raises(NoVerdict, match=r"^/no/such/python is no interpreter .*No such file"):
        run(RIGHT)
    results = run.run_many([RIGHT, RIGHT])
    assert [type(result) for result in results] == [NoVerdict, NoVerdict]


def test_an_interpreter_without_pytest_is_no_verdict_and_says_what_to_do(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    run = PytestRunner(ADD, python=python, env={"PYTHONUSERBASE": str(tmp_path)})
    with pytest.raises(NoVerdict) as caught:
        run(RIGHT)
    wanted = f"{python} has no pytest: install it with {python} -m pip install pytest"
    assert str(caught.value) == wanted


def test_coverage_without_coverage_py_is_no_verdict_and_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "coverage.py").write_text("raise ImportError('none', name='coverage')\n")
    run = PytestRunner(ADD, coverage=True, env={"PYTHONPATH": str(tmp_path)})
    with pytest.raises(NoVerdict, match=r"no coverage: install it with .* pip install coverage$"):
        run(RIGHT)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"args": ["--nonsense"]}, "unrecognized arguments: --nonsense"),
        ({"args": ["no_such_file.py"]}, "file or directory not found: no_such_file.py"),
    ],
)
def test_what_pytest_refuses_is_no_verdict(settings: dict, message: str) -> None:
    with pytest.raises(NoVerdict, match=r"^pytest refused its arguments") as caught:
        PytestRunner(ADD, **settings)(RIGHT)
    assert message in str(caught.value)


def test_a_plugin_that_is_not_there_is_no_verdict() -> None:
    with pytest.raises(NoVerdict, match=r"has no no_such_plugin: install it with "):
        PytestRunner(ADD, plugins=["no_such_plugin"])(RIGHT)


def test_an_interpreter_that_ends_at_once_is_no_verdict(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho out of order >&2\nexit 3\n")
    python.chmod(0o755)
    with pytest.raises(NoVerdict, match=r"it did not say where it is: out of order$"):
        PytestRunner(ADD, python=python)(RIGHT)


def test_no_room_for_the_directory_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/no/such/place")
    with pytest.raises(NoVerdict, match=r"^/no/such/place/testgrad-\w+: No such file or directory"):
        PytestRunner(ADD)(RIGHT)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"stop_at": "never"}, 'stop_at must be "first_failure" or None, got "never"'),
        ({"repeat": 0}, "repeat must be >= 1, got 0"),
        ({"require": "walls"}, 'require: no "walls"; there is weak, partial, full, user, '),
        ({"avoid": ["full"]}, 'avoid: no "full"; there is user, pid, '),
        ({"module": "../x"}, 'module must be a dotted name such as "pkg.mod", got "../x"'),
        ({"isolation": "magic"}, 'isolation must be "process" or "none", got "magic"'),
        ({"tests": {"../x": ""}}, 'tests: "../x" is not a relative path that stays inside'),
    ],
)
def test_wrong_settings_are_refused_by_name(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=r"must be|is not|there is") as caught:
        PytestRunner(**{"tests": ADD, **settings})
    assert str(caught.value).startswith(message)


def test_wrong_things_are_refused() -> None:
    with pytest.raises(FileNotFoundError, match="tests: /no/such: no such file or directory"):
        PytestRunner("/no/such")
    with pytest.raises(FileNotFoundError, match="candidate: /no/such: no such file or directory"):
        PytestRunner(ADD)(Path("/no/such"))
    with pytest.raises(TypeError, match="candidate must be str, a path or a mapping"):
        PytestRunner(ADD)(7)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="workers must be >= 1"):
        PytestRunner(ADD).run_many([], workers=0)


CTRL_C_IN_MANY = """
import threading
from testgrad import AgentTestLoop, Limits, PytestRunner

tests = {"test_it.py": "import solution\\ndef test_it(): solution.hang()"}
limits = Limits(timeout_s=600)
loop = AgentTestLoop(PytestRunner(tests, limits=limits), lambda history, task: task)
code = %r
try:
    loop.run_many([code, code + "pass"])
except KeyboardInterrupt as error:
    for thread in threading.enumerate():  # what a late worker does to a history is to show
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join(20)
    print([(history.stopped_by, history.error) for history in error.histories])
"""


def test_ctrl_c_in_a_loop_over_many_tasks_leaves_nothing_behind(tmp_path: Path) -> None:
    code = NAME_ITSELF + "import time\ndef hang(): name_itself('began'); time.sleep(600)\n"
    command = [sys.executable, "-c", CTRL_C_IN_MANY % code]
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as child:
        wait_for(lambda: len(named(child.pid, "began")) == 2)
        child.send_signal(signal.SIGINT)
        said, _ = child.communicate(timeout=120)
    assert said == "[('interrupted', None), ('interrupted', None)]\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("module", ["conftest", "test_it", "pkg.test_it", "it_test", "no name"])
def test_a_candidate_cannot_be_called_like_a_test(module: str) -> None:
    with pytest.raises(ValueError, match="not to be that of a test file"):
        PytestRunner({"test_it.py": ""}, module=module)


def test_files_behind_one_that_ends_its_process_are_judged() -> None:
    tests = {
        "test_a.py": "from solution import act\ndef test_a(): assert act() == 1\n",
        "test_b.py": "import os\nos._exit(0)\ndef test_b(): pass\n",
        "test_c.py": "def test_c(): pass\n",
        "test_d.py": "import os\nos.abort()\n",
    }
    suite = PytestRunner(tests)("def act(): return 1")
    assert said(suite) == [
        ("test_b.py", "error", "crash"),
        ("test_d.py", "error", "crash"),
        ("test_a", "passed", None),
        ("test_c", "passed", None),
    ]
    tests["test_e.py"] = "import missing\n"  # which pytest itself runs no test behind
    suite = PytestRunner(tests)("def act(): return 1")
    assert said(suite)[2:4] == [
        ("test_e.py", "error", "collection"),
        ("test_a", "error", "not_run"),
    ]
