"""The journal of a run: killed, cut, full, read-only, in use, broken; and what `resume` makes.

`python test_store.py ROLE FOLDER` plays the other process of a test.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import testgrad.errors
from testgrad import (
    AgentTestLoop,
    Binary,
    History,
    PassRate,
    RewardSignal,
    StoreError,
    SuiteResult,
    TestResult,
)

TASK = {"note": 'a "quoted" line\nand ünïcode', "program": "gcd"}
KILLS = 200
LIMIT_S = 60
WHOLE_LIMIT_S = 600  # for another process with many such waits in it


def agent(history: History, task: object) -> str:
    return f"{task!r} after {len(history)} with {sum(e.reward.total for e in history)!r}"


def suite_after(passed: int, tests: int = 3, message: str = "") -> SuiteResult:
    """Some pass; the times are such that the rewards need all their digits."""
    return SuiteResult(
        TestResult(
            f"test_{i}",
            "passed" if i < passed else "failed",
            message=message,
            duration_ms=(passed + i) / 7,
        )
        for i in range(tests)
    )


def run_tests(code: str) -> SuiteResult:
    """Judges by the text, so that a history that went another way is seen to differ."""
    return suite_after(sum(code.encode()) % 3)


def loop_on(journal: Path | None, iterations: int = 30, **options: Any) -> AgentTestLoop:
    options.setdefault("test_runner", run_tests)
    options.setdefault("agent_fn", agent)
    return AgentTestLoop(max_iterations=iterations, journal=journal, **options)


def cut_last_line(path: Path) -> None:
    kept = path.read_bytes().splitlines(keepends=True)[:-1]
    path.write_bytes(b"".join(kept))


# -- the other processes --------------------------------------------------------------------------


def other(role: str, folder: Path, *, namespace: bool = False) -> Any:
    """What the other process has to say, as JSON."""
    command = [sys.executable, __file__, role, str(folder)]
    if namespace:
        command = [*NAMESPACE, *command]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=WHOLE_LIMIT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# Mounts of its own, which vanish with it; a plain user gets them through a user namespace.
NAMESPACE = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]


def can_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    probe = [*NAMESPACE, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(probe, capture_output=True, timeout=LIMIT_S, check=False).returncode == 0


needs_mount = pytest.mark.skipif(not can_mount(), reason="this system lets us mount nothing")


def play_kills(folder: Path) -> dict[str, Any]:
    """Kill forks of this warm process in the middle of their runs, and go on with each."""
    moments = random.Random(2)
    whole = slow_loop(folder / "whole.jsonl").run(TASK)
    size = size_of(folder / "whole.jsonl")
    end_with_parent, stay = os.pipe()
    differing, seen = [], set()
    for number in range(KILLS):
        path = folder / f"{number}.jsonl"
        kill_after_bytes = moments.randrange(size)
        spin = moments.randrange(2_000)
        child = os.fork()
        if child == 0:
            os.close(stay)
            slow_loop(path).run(TASK)
            os.read(end_with_parent, 1)
            os._exit(0)
        give_up = time.monotonic() + LIMIT_S
        while size_of(path) < kill_after_bytes and time.monotonic() < give_up:
            pass
        for _ in range(spin):
            pass
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        started = size_of(path) > 0
        if started:
            seen.add(len(History.from_journal(path)))
        resumed = slow_loop(path).resume() if started else slow_loop(path).run(TASK)
        if not resumed.task == TASK == History.from_journal(path).task or not (
            resumed == whole == History.from_journal(path)
        ):
            differing.append(f"killed after {kill_after_bytes} bytes: {resumed!r}")
        path.unlink()
    return {"differing": differing, "moments": len(seen)}


def slow_loop(journal: Path) -> AgentTestLoop:
    """A loop slow enough to be killed in its middle, and not only while it writes."""

    def run_slow_tests(code: str) -> SuiteResult:
        for _ in range(5_000):
            pass
        return run_tests(code)

    return loop_on(journal, test_runner=run_slow_tests)


def size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def play_full_disk(folder: Path) -> dict[str, Any]:
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    subprocess.run(mount, check=True)

    def make_room() -> None:
        subprocess.run(["mount", "-o", "remount,size=4m", str(folder)], check=True)

    return run_out_of_space(folder, make_room)


def play_file_limit(folder: Path) -> dict[str, Any]:
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 10, hard))
    return run_out_of_space(folder, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard)))


def run_out_of_space(folder: Path, make_room: Callable[[], None]) -> dict[str, Any]:
    """Run until the journal does not fit any more, make room, go on."""
    path = folder / "run.jsonl"

    def run_wordy_tests(code: str) -> SuiteResult:
        return suite_after(sum(code.encode()) % 3, message="x" * 3_000)

    def wordy_loop(journal: Path | None) -> AgentTestLoop:
        return loop_on(journal, iterations=20, test_runner=run_wordy_tests)

    loop = wordy_loop(path)
    try:
        loop.run(TASK)
        return {"error": None}
    except StoreError as error:
        report = {"error": str(error), "path": str(error.path), "done": len(error.history)}
    report["ends_whole"] = path.read_bytes().endswith(b"\n")
    on_disk = History.from_journal(path)
    report["kept"] = len(on_disk)
    make_room()
    report["resumed"] = wordy_loop(path).resume() == wordy_loop(None).run(TASK)
    return report


def play_full_at_the_end(folder: Path) -> dict[str, Any]:
    """Leave no room for the line that says why the run ended."""
    path = folder / "run.jsonl"

    def fill(_: object) -> None:
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, hard))

    try:
        loop_on(path, iterations=1, on_iteration=fill).run(TASK)
        return {"error": None}
    except StoreError as error:
        history = getattr(error, "history", None)
        return {"error": str(error), "done": None if history is None else len(history)}


def refusal_of_resume(path: Path) -> dict[str, Any]:
    try:
        loop_on(path).resume()
        return {"error": None}
    except StoreError as error:
        return {"error": str(error), "path": str(error.path)}


def play_read_only_mount(folder: Path) -> dict[str, Any]:
    subprocess.run(["mount", "--bind", str(folder), str(folder)], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", str(folder)], check=True)
    return refusal_of_resume(folder / "run.jsonl")


def play_no_permission(folder: Path) -> dict[str, Any]:
    refusal_of_resume(folder / "warm.jsonl")  # all that is imported late is there now
    if os.geteuid() == 0:
        os.seteuid(65534)  # permissions do not bind root
    return refusal_of_resume(folder / "run.jsonl")


def play_holder(folder: Path) -> dict[str, Any]:
    """Keep a journal in use until told to go on."""

    def waiting_agent(history: History, task: object) -> str:
        if len(history) == 1:
            print("holding", flush=True)
            sys.stdin.readline()
        return agent(history, task)

    loop_on(folder / "run.jsonl", iterations=3, agent_fn=waiting_agent).run(TASK)
    return {}


# -- killed and cut -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def in_memory() -> Iterator[Path]:
    """A folder that waits for no disk: a killed process loses nothing that it has written."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as name:
        yield Path(name)


@pytest.fixture(scope="module")
def kills(in_memory: Path) -> Any:
    folder = in_memory / "kills"
    folder.mkdir()
    return other("kills", folder)


@pytest.mark.slow
def test_a_run_killed_at_any_of_200_moments_resumes_to_the_uninterrupted_history(
    kills: Any,
) -> None:
    assert kills["differing"] == []


@pytest.mark.slow
def test_the_200_moments_are_spread_over_the_run(kills: Any) -> None:
    assert kills["moments"] >= 15


def test_a_journal_cut_at_any_byte_resumes_to_the_uninterrupted_history(in_memory: Path) -> None:
    path, whole_path = in_memory / "run.jsonl", in_memory / "whole.jsonl"
    whole = loop_on(whole_path, iterations=2).run(TASK)
    bytes_ = whole_path.read_bytes()
    loop = loop_on(path, iterations=2)
    differing = []
    for length in range(bytes_.index(b"\n") + 1, len(bytes_)):
        path.write_bytes(bytes_[:length])
        if not loop.resume() == whole == History.from_journal(path):
            differing.append(length)
    assert differing == []


def test_a_journal_cut_within_its_header_never_hands_the_agent_another_task(
    in_memory: Path,
) -> None:
    path = in_memory / "header.jsonl"
    loop_on(path, iterations=1).run(TASK)
    header = path.read_bytes().splitlines()[0]
    tasks = []

    def noting_agent(history: History, task: object) -> str:
        tasks.append(task)
        return agent(history, task)

    for length in range(len(header) + 1):
        path.write_bytes(header[:length])
        try:
            loop_on(path, iterations=1, agent_fn=noting_agent).resume()
        except StoreError:
            continue
    assert [task for task in tasks if task != TASK] == []


def test_run_many_goes_on_with_a_journal_cut_within_its_header(tmp_path: Path) -> None:
    path = tmp_path / "task-0000.jsonl"
    [whole] = loop_on(None, iterations=1).run_many([TASK], journal_dir=tmp_path)
    path.write_bytes(path.read_bytes()[:40])
    [resumed] = loop_on(None, iterations=1).run_many([TASK], journal_dir=tmp_path)
    assert (resumed, resumed.task) == (whole, TASK)


def test_an_empty_file_is_a_journal_that_has_not_begun(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.touch()
    assert loop_on(path, iterations=1).run(TASK) == History.from_journal(path)


def test_a_half_written_last_line_is_left_out_when_read(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    loop_on(path, iterations=3).run(TASK)
    cut_last_line(path)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 10)
    assert len(History.from_journal(path)) == 2


def test_reading_a_half_written_journal_does_not_change_it(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    loop_on(path, iterations=3).run(TASK)
    before = path.read_bytes()[:-10]
    path.write_bytes(before)
    History.from_journal(path)
    assert path.read_bytes() == before


STOPS: dict[str, tuple[int, dict[str, Any]]] = {
    "all_passed": (9, {"test_runner": lambda code: suite_after(3 if "after 2" in code else 1)}),
    "max_iterations": (3, {}),
    "patience": (9, {"test_runner": lambda code: suite_after(1), "patience": 2}),
    "stop_when": (9, {"stop_when": lambda history: len(history) == 2}),
}


@pytest.mark.parametrize("reason", STOPS)
def test_a_run_killed_before_its_end_was_written_ends_the_same_way(
    reason: str, tmp_path: Path
) -> None:
    path, (iterations, options) = tmp_path / "run.jsonl", STOPS[reason]
    whole = loop_on(path, iterations, **options).run(TASK)
    cut_last_line(path)
    assert loop_on(path, iterations, **options).resume() == whole


@pytest.mark.parametrize("reason", STOPS)
def test_resuming_a_finished_run_returns_at_once(reason: str, tmp_path: Path) -> None:
    path, (iterations, options) = tmp_path / "run.jsonl", STOPS[reason]
    loop_on(path, iterations, **options).run(TASK)
    asked = []

    def noting_agent(history: History, task: object) -> str:
        asked.append(task)
        return agent(history, task)

    loop_on(path, iterations, **options, agent_fn=noting_agent).resume()
    assert asked == []


def test_resuming_a_finished_run_says_why_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    loop_on(path, iterations=2).run(TASK)
    assert loop_on(path, iterations=2).resume().stopped_by == "max_iterations"


def test_a_finished_run_goes_on_when_it_may_take_more_iterations(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    loop_on(path, iterations=2).run(TASK)
    assert loop_on(path, iterations=5).resume() == loop_on(None, iterations=5).run(TASK)


def test_patience_counts_the_iterations_before_the_kill(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    options: dict[str, Any] = {"test_runner": lambda code: suite_after(1), "patience": 4}
    whole = loop_on(path, **options).run(TASK)
    for _ in range(3):
        cut_last_line(path)
    assert loop_on(path, **options).resume() == whole


def test_wall_time_goes_on_where_the_kill_was(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    before = loop_on(path, iterations=2).run(TASK).duration_ms
    assert loop_on(path, iterations=3).resume().duration_ms > before


def test_resume_hands_the_task_of_the_journal_to_the_agent(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    loop_on(path, iterations=1).run(TASK)
    assert loop_on(path, iterations=2).resume().task == TASK


@pytest.mark.parametrize(
    "task",
    [
        {"b": 1, "a": 2},
        2**70,
        -(2**63) - 1,
        0.1 + 0.2,
        1e300,
        "lone \udcff",
        "\x00",
        [[[[]]]],
        None,
        True,
        float("inf"),
    ],
    ids=repr,
)
def test_a_task_comes_back_from_the_journal_exactly_or_is_refused_at_once(
    task: object, tmp_path: Path
) -> None:
    path = tmp_path / "run.jsonl"
    try:
        loop_on(path, iterations=1).run(task)
    except (TypeError, ValueError):
        return
    assert repr(History.from_journal(path).task) == repr(task)


def test_a_run_that_raised_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"

    def failing_agent(history: History, task: object) -> str:
        if len(history) == 2:
            raise ConnectionError("no answer")
        return agent(history, task)

    with pytest.raises(ConnectionError):
        loop_on(path, iterations=4, agent_fn=failing_agent).run(TASK)
    assert loop_on(path, iterations=4).resume() == loop_on(None, iterations=4).run(TASK)


def test_each_iteration_is_in_the_file_before_the_next_begins(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    in_file = []

    def looking_agent(history: History, task: object) -> str:
        in_file.append(History.from_journal(path) == history)
        return agent(history, task)

    loop_on(path, iterations=3, agent_fn=looking_agent).run(TASK)
    assert in_file == [True, True, True]


def test_an_iteration_is_in_the_file_before_anyone_is_told_of_it(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    in_file: list[int] = []
    loop_on(
        path, iterations=2, on_iteration=lambda _: in_file.append(len(History.from_journal(path)))
    ).run(TASK)
    assert in_file == [1, 2]


# -- full and read-only ---------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[pytest.param("full_disk", marks=needs_mount), "file_limit"])
def out_of_space(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A journal that did not fit: on a tiny disk of its own, and under a limit of the process."""
    folder = tmp_path_factory.mktemp(request.param)
    report = other(request.param, folder, namespace=request.param == "full_disk")
    return {**report, "journal": str(folder / "run.jsonl")}


def test_a_full_disk_is_a_store_error_that_names_the_journal(out_of_space: Any) -> None:
    assert out_of_space["path"] == out_of_space["journal"]


def test_a_full_disk_is_said_to_be_one(out_of_space: Any) -> None:
    assert any(words in out_of_space["error"] for words in ("No space left", "File too large"))


def test_a_full_disk_loses_no_iteration_of_the_history(out_of_space: Any) -> None:
    assert out_of_space["done"] > out_of_space["kept"] - 1 > 0


def test_a_full_disk_leaves_no_half_written_line(out_of_space: Any) -> None:
    assert out_of_space["ends_whole"]


def test_a_run_goes_on_once_the_disk_has_room_again(out_of_space: Any) -> None:
    assert out_of_space["resumed"]


def test_a_disk_that_is_full_at_the_very_end_loses_no_iteration(tmp_path: Path) -> None:
    assert other("full_at_the_end", tmp_path)["done"] == 1


@pytest.fixture
def finished() -> Iterator[Path]:
    """A journal that every user may read, in a folder that every user may enter."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        path = folder / "run.jsonl"
        loop_on(path, iterations=2).run(TASK)
        yield path


@needs_mount
def test_a_read_only_disk_is_a_store_error_that_says_so(finished: Path) -> None:
    report = other("read_only_mount", finished.parent, namespace=True)
    assert report["error"].endswith("cannot open for writing: Read-only file system (os error 30)")


@needs_mount
def test_a_journal_on_a_read_only_disk_is_kept(finished: Path) -> None:
    before = finished.read_bytes()
    other("read_only_mount", finished.parent, namespace=True)
    assert finished.read_bytes() == before


@pytest.fixture
def forbidden(finished: Path) -> Path:
    loop_on(finished.with_name("warm.jsonl"), iterations=1).run(TASK)
    for path in finished.parent.iterdir():
        path.chmod(0o444)
    return finished


def test_a_read_only_file_is_a_store_error_that_says_so(forbidden: Path) -> None:
    report = other("no_permission", forbidden.parent)
    assert report["error"].endswith("cannot open for writing: Permission denied (os error 13)")


def test_a_read_only_file_is_kept(forbidden: Path) -> None:
    before = forbidden.read_bytes()
    other("no_permission", forbidden.parent)
    assert forbidden.read_bytes() == before


def test_a_folder_in_the_journals_place_is_a_store_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="Is a directory"):
        loop_on(tmp_path).run(TASK)


def test_a_missing_folder_is_a_file_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        loop_on(tmp_path / "missing" / "run.jsonl").run(TASK)


def test_resuming_a_missing_journal_is_a_file_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        loop_on(tmp_path / "run.jsonl").resume()


def test_a_file_not_found_names_the_journal(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        History.from_journal(tmp_path / "run.jsonl")
    assert Path(caught.value.filename) == tmp_path / "run.jsonl"


def test_resuming_a_missing_journal_makes_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        loop_on(tmp_path / "run.jsonl").resume()
    assert list(tmp_path.iterdir()) == []


# -- in use ---------------------------------------------------------------------------------------


@pytest.fixture
def in_use(tmp_path: Path) -> Iterator[Path]:
    """A journal that another process writes to."""
    with subprocess.Popen(
        [sys.executable, __file__, "holder", str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "holding\n"
            yield tmp_path / "run.jsonl"
            holder.communicate("go on\n", timeout=LIMIT_S)
        finally:
            holder.kill()


def test_a_second_process_cannot_resume_a_journal_in_use(in_use: Path) -> None:
    with pytest.raises(StoreError, match="in use by another run"):
        loop_on(in_use).resume()


def test_a_second_process_cannot_run_on_a_journal_in_use(in_use: Path) -> None:
    with pytest.raises(StoreError, match="in use by another run"):
        loop_on(in_use).run(TASK)


def test_a_refused_second_process_changes_nothing(in_use: Path) -> None:
    before = in_use.read_bytes()
    with pytest.raises(StoreError):
        loop_on(in_use).resume()
    assert in_use.read_bytes() == before


def test_a_journal_in_use_can_be_read(in_use: Path) -> None:
    assert len(History.from_journal(in_use)) == 1


def test_a_second_loop_of_the_same_process_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    refusals = []

    def intruding_agent(history: History, task: object) -> str:
        with pytest.raises(StoreError) as caught:
            loop_on(path).resume()
        refusals.append("in use" in str(caught.value))
        return agent(history, task)

    loop_on(path, iterations=1, agent_fn=intruding_agent).run(TASK)
    assert refusals == [True]


def test_a_journal_is_free_again_after_an_exception(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"

    def failing_tests(code: str) -> SuiteResult:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        loop_on(path, iterations=1, test_runner=failing_tests).run(TASK)
    assert len(loop_on(path, iterations=1).resume()) == 1


def test_a_journal_that_holds_a_run_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    loop_on(path, iterations=1).run(TASK)
    with pytest.raises(StoreError, match=r"already holds something; go on with resume\(\)"):
        loop_on(path, iterations=1).run(TASK)


# -- broken and strange ---------------------------------------------------------------------------


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A journal whose third line is broken."""
    path = tmp_path / "run.jsonl"
    loop_on(path, iterations=3).run(TASK)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b'"iteration"', b'"iterat', 1)
    path.write_bytes(b"".join(lines))
    return path


@pytest.mark.parametrize("read", [History.from_journal, lambda path: loop_on(path).resume()])
def test_a_broken_line_is_a_store_error_with_its_number(
    read: Callable[[Path], History], broken: Path
) -> None:
    with pytest.raises(StoreError) as caught:
        read(broken)
    assert caught.value.line == 3


def test_a_broken_line_is_a_store_error_with_the_path(broken: Path) -> None:
    with pytest.raises(StoreError) as caught:
        History.from_journal(broken)
    assert Path(str(caught.value.path)) == broken


def test_a_broken_journal_is_kept(broken: Path) -> None:
    before = broken.read_bytes()
    with pytest.raises(StoreError):
        loop_on(broken).resume()
    assert broken.read_bytes() == before


@pytest.mark.parametrize(
    ("change", "line", "words"),
    [
        (lambda lines: lines[1:], 1, "no header before it"),
        (lambda lines: [lines[0], *lines], 2, "a second header"),
        (lambda lines: [lines[0], *lines[2:]], 2, "iteration 2 where 1 comes next"),
        (lambda lines: [lines[0].replace(b'"version":1', b'"version":99')], 1, "version 99"),
        (lambda lines: [b"\xff\xfe not JSON\n", *lines], 1, ""),
    ],
    ids=["no header", "two headers", "a gap", "a newer version", "not text"],
)
def test_a_journal_that_is_none_is_refused_with_the_line_and_the_reason(
    change: Callable[[list[bytes]], list[bytes]], line: int, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "run.jsonl"
    loop_on(path, iterations=3).run(TASK)
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))
    with pytest.raises(StoreError, match=f"line {line}: .*{words}"):
        History.from_journal(path)


def test_a_journal_of_another_strategy_is_refused_with_both(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    loop_on(path, iterations=1, strategy=Binary()).run(TASK)
    with pytest.raises(StoreError, match=r"(?s)strategy.*binary.*pass_rate"):
        loop_on(path, iterations=2, strategy=PassRate()).resume()


def by_hand(suite: SuiteResult, previous: SuiteResult | None) -> RewardSignal:
    return RewardSignal(suite.pass_rate, 0.0, 0.0, 0.0, 0.0, suite.pass_rate / 3)


def test_a_journal_of_an_own_strategy_resumes_under_it(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    loop_on(path, iterations=1, strategy=by_hand).run(TASK)
    resumed = loop_on(path, iterations=3, strategy=by_hand).resume()
    assert resumed == loop_on(None, iterations=3, strategy=by_hand).run(TASK)


def test_a_task_that_is_not_json_is_a_type_error(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="task must be plain JSON data"):
        loop_on(tmp_path / "run.jsonl").run({1, 2})


def test_a_task_that_is_not_json_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        loop_on(tmp_path / "run.jsonl").run(object())
    assert list(tmp_path.iterdir()) == []


def test_a_task_that_is_not_json_is_fine_without_a_journal() -> None:
    task = object()
    assert loop_on(None, iterations=1).run(task).task is task


def test_a_loop_without_a_journal_cannot_resume() -> None:
    with pytest.raises(ValueError, match="no journal to resume"):
        loop_on(None).resume()


def test_resume_takes_another_journal_than_the_loops_own(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    whole = loop_on(path, iterations=2).run(TASK)
    assert loop_on(None, iterations=2).resume(path) == whole


def test_a_journal_holds_the_whole_history(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    whole = loop_on(path).run(TASK)
    assert History.from_journal(path) == whole


def test_a_journal_holds_text_that_is_not_unicode(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    whole = loop_on(
        path,
        iterations=1,
        agent_fn=lambda history, task: "code \udcff \x00 \u2028",
        test_runner=lambda code: suite_after(1, message="\udcff\x00\u2028\r\n"),
    ).run(TASK)
    assert History.from_journal(path) == whole


def test_a_store_error_is_a_testgrad_error() -> None:
    assert issubclass(StoreError, testgrad.errors.TestgradError)


if __name__ == "__main__":
    play = globals()[f"play_{sys.argv[1]}"]
    print(json.dumps(play(Path(sys.argv[2]))))


def test_a_device_is_no_journal() -> None:
    with pytest.raises(StoreError, match="not a regular file"):
        loop_on(Path("/dev/null"), iterations=1).run(TASK)
