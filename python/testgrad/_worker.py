"""Runs one pytest session and reports it test by test, as JSON lines on a descriptor of its own.

For a candidate it runs in a child of a warm worker (see `_zygote.py`), for a project's own tests as
`python _worker.py SETTINGS DESCRIPTOR` in their directory. It judges nothing and prints nothing. It
needs only the standard library and pytest, on Python 3.8 or later, since it runs in the interpreter
the user chose. Readers ignore the kinds of lines and the keys that they do not know.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    # The package's own modules must not be importable by their bare names. The tests' directory
    # comes first, as with `python -m pytest`, but only once our own imports are done.
    del sys.path[0]

import base64
import fcntl
import io
import json
import os
import resource
import shutil
import time
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

MESSAGE_CHARS = 2_000
DETAILS_CHARS = 20_000
WARNINGS = 1_000
SEVERITIES = {"critical": 3, "major": 2, "minor": 1}
MARKERS = (
    "severity(level): how much a failure of this test weighs: critical, major or minor",
    "critical: a failure of this test weighs most",
    "major: a failure of this test weighs as usual",
    "minor: a failure of this test weighs least",
)


class Channel:
    """Writes one JSON object a line, at once, from this process only."""

    def __init__(self, descriptor: int) -> None:
        # A high number survives tests that close or reuse the low ones; children do not inherit it.
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        lowest = 900 if soft == resource.RLIM_INFINITY else max(3, min(900, soft - 16))
        if descriptor < lowest:
            low, descriptor = descriptor, fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, lowest)
            os.close(low)
        self._descriptor = descriptor
        # Kept here because tests replace functions of these modules.
        self._encode = json.JSONEncoder(ensure_ascii=True).encode
        self._write, self._getpid = os.write, os.getpid
        self._exit, self._sleep = os._exit, time.sleep
        self._owner = os.getpid()
        self._cut = False

    def send(self, kind: str, **fields: Any) -> None:
        """Write one line; a forked copy of this process writes nothing."""
        if self._getpid() != self._owner:
            return
        line = self._encode({"kind": kind, **fields}) + "\n"
        if self._cut:  # a signal handler raised in the middle of the line before
            line = "\n" + line
        self._cut = True
        rest = line.encode()
        try:
            while rest:
                rest = rest[self._write(self._descriptor, rest) :]
        except OSError:
            self._exit(1)  # nobody can hear us any more
        self._cut = False

    def wait(self) -> None:
        """Stay until the reader ends this process: while it lives, what it started can be found."""
        if self._getpid() == self._owner:
            self._sleep(5.0)
        self._exit(0)


class Silence:
    """A channel to nobody."""

    def send(self, kind: str, **fields: Any) -> None:
        """Say nothing."""


class Reporter:
    """The pytest plugin: one method per hook."""

    def __init__(self, channel: Channel | None, done: list[str]) -> None:
        self.channel: Any = channel or Silence()
        self.done = done
        self.skipped: list[str] = []
        self.early_end: Any = ()
        self.outcome = Outcome()
        self.stage = "arguments"
        self.glass: Any = None
        self.test: str | None = None
        self.integrity: Any = None
        self.is_shared = False

    # -- start -------------------------------------------------------------------------------------

    def pytest_load_initial_conftests(self) -> Generator[None, Any, None]:  # made a wrapper in main
        self.stage = "conftest"
        outcome = yield
        if outcome.excinfo is None:
            self.stage = "arguments"

    def is_refused(self, code: int | None) -> bool:
        """Say whether pytest could not use its arguments, plugins or ini file."""
        if code == 4:
            return self.stage in ("arguments", "tests")
        return code in (None, 3) and self.stage == "arguments"

    def pytest_configure(self, config: Any) -> None:
        for marker in MARKERS:
            config.addinivalue_line("markers", marker)

    def pytest_sessionstart(self, session: Any) -> None:
        self.early_end = session.Interrupted  # what pytest raises itself, as with -x

    # -- collection --------------------------------------------------------------------------------

    def pytest_collectstart(self, collector: Any) -> None:
        if collector.parent is not None:  # not the session itself
            self.channel.send("collecting", name=clean(collector.nodeid))

    def pytest_make_collect_report(self, collector: Any) -> Any:
        if not self.skipped or clean(collector.nodeid) not in self.skipped:
            return None
        # An earlier session ended in it.
        return sys.modules["_pytest.reports"].CollectReport(collector.nodeid, "passed", None, [])

    def pytest_collectreport(self, report: Any) -> None:
        fields: dict[str, Any] = {}
        if report.outcome != "passed":
            fields = {"message": message_of(report), "details": details_of(report)}
        self.channel.send("collection", name=clean(report.nodeid), outcome=report.outcome, **fields)

    def pytest_collection_finish(self, session: Any) -> None:
        warnings: list[str] = []
        for item in session.items:  # a line each, since a line has a greatest length
            self.channel.send("test", **described(item, warnings))
        for warning in warnings[:WARNINGS]:
            self.channel.send("warning", message=warning)
        self.stage = "tests"
        maxfail = session.config.getoption("maxfail") or 0
        self.channel.send("collected", maxfail=maxfail)
        if self.done:
            session.items[:] = without(session.items, self.done)

    # -- tests -------------------------------------------------------------------------------------

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.outcome = Outcome()
        self.test = clean(nodeid)
        self.channel.send("started", name=self.test)
        if self.glass is not None:
            self.glass.begin_test(nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "setup":
            self.outcome = Outcome()  # a plugin may run a test again
        self.outcome.add(report)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        fields = self.outcome.fields()
        if self.glass is not None:
            fields.update(candidates_part(self.glass, fields))
            self.glass.begin_test(None)
        self.channel.send("finished", name=clean(nodeid), **fields)
        self.test = None

    def mark(self, kind: str, evidence: str) -> None:
        """Say what looks suspicious in the candidate."""
        fields = {"mark": kind, "evidence": clean(evidence, MESSAGE_CHARS)}
        self.channel.send("mark", test=self.test, **fields)

    # -- end ---------------------------------------------------------------------------------------

    def pytest_keyboard_interrupt(self, excinfo: Any) -> None:
        if not isinstance(excinfo.value, self.early_end):
            self.stage = "interrupted"
            self.channel.send("interrupted", message=exception_of(excinfo))

    def pytest_internalerror(self, excinfo: Any) -> None:
        self.stage = "broken"
        self.channel.send("internal_error", message=exception_of(excinfo))


class Outcome:
    """Folds the reports of one test's phases and subtests into one outcome."""

    def __init__(self) -> None:
        self.phases: dict[str, Any] = {}
        self.failed_subtest: Any = None
        self.seconds = 0.0

    def add(self, report: Any) -> None:
        if type(report).__name__.lower() == "subtestreport":
            if report.outcome == "failed" and self.failed_subtest is None:
                self.failed_subtest = report
            return
        self.phases[report.when] = report
        self.seconds += report.duration

    def fields(self) -> dict[str, Any]:
        status, reason, report = self._fold()
        fields: dict[str, Any] = {"status": status, "duration_ms": self.seconds * 1000.0}
        if reason is not None:
            fields["reason"] = reason
        if report is not None:
            fields["message"] = message_of(report)
            fields["details"] = details_of(report)
        return fields

    def _fold(self) -> tuple[str, str | None, Any]:
        """Status, reason, and the report that says why."""
        setup, call, teardown = (self.phases.get(when) for when in ("setup", "call", "teardown"))
        if setup is None or teardown is None:
            return "error", "not_run", None
        if setup.outcome == "failed":
            return "error", "fixture", setup
        if call is not None and call.outcome == "failed":
            return "failed", None, self.failed_subtest or call
        if self.failed_subtest is not None:
            return "failed", None, self.failed_subtest
        if teardown.outcome == "failed":
            return "error", "fixture", teardown
        for report in (setup, call):
            if report is not None and report.outcome == "skipped":
                return "skipped", "xfail" if hasattr(report, "wasxfail") else "skip", report
        if call is None:
            return "error", "not_run", None
        return "passed", None, None


def candidates_part(glass: Any, fields: dict[str, Any]) -> dict[str, Any]:
    """What the candidate's own process has to do with how a test ended."""
    details = fields.get("details", "")
    if glass.told and fields["status"] in ("failed", "error"):
        details = clean(f"{details}\n--- candidate ---\n{glass.told}", DETAILS_CHARS)
    if glass.lost is None:
        return {"details": details} if details else {}
    message = clean(glass.lost["message"], MESSAGE_CHARS)
    return {**glass.lost, "status": "error", "message": message, "details": details}


def described(item: Any, warnings: list[str]) -> dict[str, Any]:
    """Describe a test: its name, where it stands, and its severity where a marker says one."""
    path, line, _ = item.location
    test: dict[str, Any] = {"name": clean(item.nodeid), "file": clean(path)}
    if line is not None:
        test["line"] = line + 1
    try:
        severity = severity_of(item)
    except ValueError as error:
        warnings.append(clean(f"{test['name']}: {error}", MESSAGE_CHARS))
    else:
        if severity is not None:
            test["severity"] = severity
    return test


def severity_of(item: Any) -> int | None:
    """Find the closest marker that names a severity."""
    for marker in item.iter_markers():
        if marker.name in SEVERITIES:
            return SEVERITIES[marker.name]
        if marker.name == "severity":
            level = next(iter((*marker.args, *marker.kwargs.values())), None)
            level = getattr(level, "value", level)
            if isinstance(level, str) and level.lower() in SEVERITIES:
                return SEVERITIES[level.lower()]
            if isinstance(level, int) and level in SEVERITIES.values():
                return level
            problem = f"unknown severity {level!r}, counted as major"
            raise ValueError(f"{problem}; use critical, major or minor")
    return None


def without(items: list[Any], done: list[str]) -> Iterator[Any]:
    """Leave out what is done; a name listed twice is left out twice."""
    counts: dict[str, int] = {}
    for name in done:
        counts[name] = counts.get(name, 0) + 1
    for item in items:
        name = clean(item.nodeid)
        if counts.get(name, 0) > 0:
            counts[name] -= 1
        else:
            yield item


def message_of(report: Any) -> str:
    """Name the exception and its text, as pytest's own summary does."""
    longrepr = report.longrepr
    if isinstance(longrepr, tuple):  # a skip: file, line, reason
        return clean(longrepr[-1], MESSAGE_CHARS)
    crash = getattr(longrepr, "reprcrash", None)
    if crash is not None and crash.message:
        return clean(crash.message, MESSAGE_CHARS)
    lines = [line for line in text_of(report).splitlines() if line.strip()]
    marked = [line[1:].strip() for line in lines if line.startswith("E  ")]
    return clean((marked or lines or [""])[-1], MESSAGE_CHARS)


def exception_of(excinfo: Any) -> str:
    try:
        return clean(excinfo.exconly(), MESSAGE_CHARS)
    except Exception:  # the text of a candidate's exception may itself raise
        return clean(excinfo.typename)


def details_of(report: Any) -> str:
    """Give the traceback, then what the test printed."""
    parts = [text_of(report)]
    for title, content in report.sections:
        parts.append(f"--- {title} ---\n{clean(content, DETAILS_CHARS)}")
    return clean("\n".join(part for part in parts if part), DETAILS_CHARS)


def text_of(report: Any) -> str:
    if isinstance(report.longrepr, tuple):
        return ""
    try:
        return str(report.longreprtext)
    except Exception:  # the text of a candidate's exception may itself raise
        return ""


def clean(value: object, limit: int | None = None) -> str:
    """Text that any JSON reader takes, at most `limit` characters with the middle cut out."""
    text = str(value)
    if limit is not None and len(text) > limit:
        head, tail = limit * 2 // 3, limit // 3
        left_out = len(text) - head - tail
        text = f"{text[:head]}\n... {left_out} characters left out ...\n{text[-tail:]}"
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


class Lines:
    """Which lines of the candidate ran, measured by coverage.py."""

    def __init__(self, files: list[str]) -> None:
        if sys.version_info >= (3, 12):
            os.environ["COVERAGE_CORE"] = "sysmon"
        import coverage

        self.sources = {path: Path(path).read_bytes().splitlines() for path in files}
        self.recorder = coverage.Coverage(data_file=None, config_file=False, include=files)
        self.recorder.start()
        os.environ.pop("COVERAGE_CORE", None)

    def measured(self) -> list[dict[str, Any]]:
        """For each file the numbers of its executable lines and of those that did not run."""
        self.recorder.stop()
        return [self._measured(path) for path in self.sources]

    def _measured(self, path: str) -> dict[str, Any]:
        try:
            _, executable, _, missing, _ = self.recorder.analysis2(path)
        except Exception:  # not Python, or gone: whatever is there, none of it ran
            lines = enumerate(self.sources[path], 1)
            executable = missing = [number for number, line in lines if line.strip()]
        return {"file": path, "executable": executable, "missing": missing}


class Warm:
    """A session that is set up in a warm worker and run by its children; see `_zygote.py`.

    pytest's own `wrap_session` does everything; what it is told to run between start and finish of
    the session is the worker's loop, which a child leaves with its job in hand. Not for tests that
    bring configuration: that is read when a session is set up.
    """

    def __init__(self) -> None:
        self.reporter = Reporter(None, [])
        self.config: Any = None
        self.args: list[str] = []
        self.job: Any = None

    def prepare(self, settings: dict[str, Any]) -> None:
        """Load pytest, let it run once, and set up the session where that is possible."""
        import importlib

        import pytest

        mirror = sys.modules.get("_testgrad_mirror")
        self.reporter.glass = mirror and mirror.glass
        pytest.hookimpl(hookwrapper=True)(Reporter.pytest_load_initial_conftests)
        for name in [*settings["plugins"], *(["coverage"] if settings["coverage"] else [])]:
            importlib.import_module(name)
        self.args = [*settings["args"], f"--rootdir={Path.cwd()}"]
        warm_up(self.args)
        zygote = sys.modules["_testgrad_zygote"]
        integrity = zygote.load(str(Path(__file__).with_name("_integrity.py")))
        self.reporter.integrity = integrity.Integrity()
        if not any(arg.startswith(OTHER_COMMANDS) for arg in self.args):
            with suppress(Exception, SystemExit):
                self.config = self.configured()

    def configured(self) -> Any:
        from _pytest.config import _prepareconfig

        config = _prepareconfig(self.args, [self.reporter])
        commands = config.pluginmanager.hook.pytest_cmdline_main.get_hookimpls()
        names = [getattr(command.plugin, "__name__", "") for command in commands]
        if not all(name.startswith("_pytest.") for name in names):
            return None  # a plugin runs sessions in its own way
        return config

    def around(self, serve: Any) -> Any:
        """Wrap the worker's loop into the session."""
        if self.config is None:
            return serve

        def run() -> None:
            import pytest
            from _pytest.main import wrap_session

            code: int | None = None
            message = ""
            try:
                code = int(wrap_session(self.config, lambda _, session: self.go(serve, session)))
            except pytest.UsageError as error:  # as `pytest.main` does
                code = 4
                sys.stderr.write("".join(f"ERROR: {words}\n" for words in error.args))
            except BaseException as error:
                message = clean(f"{type(error).__name__}: {error}", MESSAGE_CHARS)
            if self.job is None:
                sys.stderr.write(f"the session of the worker ended: {code} {message}\n")
                os._exit(1)
            channel, lines = self.job
            end_session(channel, self.reporter, code, message, lines)
            os._exit(0)

        return run

    def go(self, serve: Any, session: Any) -> Any:
        """Serve; in a child, run the tests of its job."""
        from _pytest.main import _main

        plugins = session.config.pluginmanager
        capture, faults = plugins.get_plugin("capturemanager"), plugins.get_plugin("faulthandler")
        if capture is not None:
            capture.stop_global_capturing()
        if faults is not None:
            faults.pytest_unconfigure(session.config)
        try:
            serve()
        except sys.modules["_testgrad_zygote"].Unwound as job:
            request, channel = job.args
        if capture is not None:
            capture.start_global_capturing()
            capture.suspend_global_capture()
        if faults is not None:
            faults.pytest_configure(session.config)
        self.job = channel, begin_session(channel, self.reporter, request, self.args)
        os.environ.setdefault("PYTEST_VERSION", sys.modules["pytest"].__version__)
        return _main(session.config, session)

    def do(self, request: dict[str, Any], blobs: bytes, job: int) -> int:
        """Lay out the files of a job and run its session; the exit code of this process."""
        zygote = sys.modules["_testgrad_zygote"]
        channel = Channel(job)
        try:
            zygote.lay_out(request["files"], blobs)
        except OSError as error:
            if not zygote.is_full(error):
                raise
            channel.send("full", message=str(error))
            return 0
        if request.get("examine"):
            rules = zygote.load(str(Path(__file__).with_name("_examine.py")))
            for path in request["examine"]:
                found = rules.examine(path, request["module"])
                if found is not None:
                    channel.send("examined", path=path, needs=found[0], why=found[1])
            return 0
        if request.get("rewrite"):
            for path in request["rewrite"]:
                self.rewrite(channel, path)
            return 0
        request["desk"] = job - 1
        if self.config is not None and not request["configured"]:
            raise zygote.Unwound(request, channel)
        run_session(channel, request, self.args, self.reporter)
        return 0

    def rewrite(self, channel: Channel, path: str) -> None:
        """Compile a test file as pytest does, and send what it would keep of that on disk."""
        from _pytest.assertion.rewrite import PYC_TAIL, _rewrite_test, _write_pyc_fp, get_cache_dir

        file = Path(path).absolute()
        with suppress(Exception):  # one that does not compile says so when it is collected
            source, code = _rewrite_test(file, self.config)
            compiled = io.BytesIO()
            _write_pyc_fp(compiled, source, code)
            target = (get_cache_dir(file) / (file.stem + PYC_TAIL)).relative_to(Path.cwd())
            text = base64.b64encode(compiled.getvalue()).decode()
            channel.send("rewritten", path=str(target), compiled=text)


# Arguments that ask pytest for something else than running tests.
OTHER_COMMANDS = (
    *("--help", "-h", "--version", "-V", "--fixtures", "--markers", "--cache-show"),
    *("--setup", "-c", "--config-file"),
)
WARM = """
import pytest
@pytest.fixture
def two(): return 2
@pytest.mark.parametrize("a", [1])
def test_equal(a, two, capsys):
    print(a)
    assert [a, two] == [1, 3]
class TestPasses:
    def test_raises(self, tmp_path):
        with pytest.raises(ValueError, match="x"): raise ValueError("x")
"""


def warm_up(args: list[str]) -> None:
    """Run a session once: what pytest imports or compiles late is there then."""
    import pytest

    path, modules = list(sys.path), set(sys.modules)
    file = Path("test_warm.py")
    file.write_text(WARM, encoding="utf-8")
    with suppress(BaseException):
        pytest.main([*args, file.name], plugins=[Reporter(None, [])])
    file.unlink()
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith(("test_warm", "conftest")):
            del sys.modules[name]
    for left in [*Path.cwd().iterdir(), *Path(os.environ["TMPDIR"]).iterdir()]:
        shutil.rmtree(left, ignore_errors=True)


_warm = Warm()
prepare, around, do = _warm.prepare, _warm.around, _warm.do


def begin_session(
    channel: Channel, reporter: Reporter, settings: dict[str, Any], args: list[str]
) -> Any:
    """Everything before pytest; what measures the lines of the candidate."""
    files = [str(Path.cwd() / path) for path in settings.get("coverage", ())]
    lines = Lines(files) if files else None
    reporter.channel, reporter.done = channel, settings["done"]
    reporter.skipped = settings["skipped"]
    if settings.get("mirror"):
        reporter.glass.mark = reporter.mark
        reporter.glass.begin(settings["desk"], settings["mirror"])
    elif reporter.integrity is not None:
        reporter.is_shared = True
        sys.modules["_testgrad_watch"].watch(lambda words: reporter.mark("blocked", words))
    sys.argv = ["pytest", *args]
    sys.path.insert(0, str(Path.cwd()))
    channel.send("ready")
    return lines


def end_session(
    channel: Channel, reporter: Reporter, code: int | None, message: str, lines: Any
) -> None:
    """Say how pytest ended."""
    for stream in (sys.__stdout__, sys.__stderr__):
        with suppress(Exception):
            stream.flush()  # type: ignore[union-attr]
    if reporter.is_refused(code):
        channel.send("refused", message=message)
    else:
        for measured in lines.measured() if lines else []:
            channel.send("coverage", **measured)
        if reporter.is_shared:
            for words in reporter.integrity.broken():
                reporter.mark("tampering", words)
        channel.send("ended", code=code, message=message)


def run_session(
    channel: Channel, settings: dict[str, Any], args: list[str], warm: Any = None
) -> None:
    """Run one session of pytest and report it."""
    import pytest

    reporter = Reporter(channel, [])
    if warm is not None:
        reporter.glass, reporter.integrity = warm.glass, warm.integrity
    lines = begin_session(channel, reporter, settings, args)
    code: int | None = None
    message = ""
    try:
        code = int(pytest.main(args, plugins=[reporter]))
    except BaseException as error:
        message = clean(f"{type(error).__name__}: {error}", MESSAGE_CHARS)
    end_session(channel, reporter, code, message, lines)


def main() -> None:
    """Run the session that the settings file describes, and stay until ended."""
    settings_path, descriptor = sys.argv[1:]
    channel = Channel(int(descriptor))
    settings = json.loads(Path(settings_path).read_text(encoding="utf-8"))
    try:
        import pytest
    except ImportError as error:
        channel.send("missing", module=clean(error.name), message=clean(error, MESSAGE_CHARS))
        return
    pytest.hookimpl(hookwrapper=True)(Reporter.pytest_load_initial_conftests)
    run_session(channel, settings, settings["args"])
    channel.wait()


if __name__ == "__main__":
    main()
