"""The progress bar: in a terminal, in a log, in a notebook; and interrupting a notebook's cell."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

LIMIT_S = 120

SETUP = """
import sys, time
from testgrad import AgentTestLoop, SuiteResult, TestResult

def suite_of(passed):
    status = ["passed"] * passed + ["failed"] * (4 - passed)
    return SuiteResult(TestResult(f"test_{i}", status[i]) for i in range(4))

def agent(history, task):
    return str(len(history))

def run_tests(code):
    return suite_of(int(code))
"""
RUN = "AgentTestLoop(run_tests, agent, progress=True).run()"


def said_to_a_file(script: str) -> str:
    """What a script writes to a stderr that is no terminal."""
    command = [sys.executable, "-c", SETUP + script]
    done = subprocess.run(
        command, capture_output=True, encoding="utf-8", timeout=LIMIT_S, check=False
    )
    assert done.stdout == ""
    return done.stderr


def wait_until_asleep(pid: int) -> None:
    """Wait for the main thread to block; a signal just before would be seen only afterwards."""
    status, asleep, give_up = Path(f"/proc/{pid}/stat"), 0, time.monotonic() + LIMIT_S
    while status.exists() and asleep < 100 and time.monotonic() < give_up:
        state = status.read_text().rpartition(")")[2].split()[0]
        asleep = asleep + 1 if state == "S" else 0


# Makes the terminal the one whose Ctrl-C reaches this process.
OWN_TERMINAL = """
import fcntl, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
"""


def said_to_a_terminal(script: str, *, columns: int = 100, press_ctrl_c: bool = False) -> str:
    """What a script writes to a terminal of its own; Ctrl-C is pressed once it is under way."""
    terminal, programs_end = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    command = [sys.executable, "-c", OWN_TERMINAL + SETUP + script]
    with subprocess.Popen(
        command,
        stdin=programs_end,
        stdout=programs_end,
        stderr=programs_end,
        start_new_session=True,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    ) as program:
        os.close(programs_end)
        said, limit = b"", threading.Timer(LIMIT_S, program.kill)
        limit.start()
        try:
            with contextlib.suppress(OSError):  # how Linux says that the program has ended
                while part := os.read(terminal, 65536):
                    said += part
                    if press_ctrl_c and b"under way" in said:
                        press_ctrl_c = False
                        wait_until_asleep(program.pid)
                        os.write(terminal, b"\x03")
        finally:
            limit.cancel()
            program.kill()
            os.close(terminal)
    return said.decode("utf-8")


def drawn_lines(said: str) -> list[str]:
    """Each state of the bar, without the codes that draw it."""
    return [line for line in re.split(r"\r\x1b\[2K|\r\n", said) if line]


# -- in a terminal ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def in_terminal() -> str:
    return said_to_a_terminal(RUN)


def test_a_terminal_shows_a_bar_that_ends_full(in_terminal: str) -> None:
    half = "█" * 12 + "░" * 12
    want = f"{half} 5/10 iterations, 4 of 4 tests pass, reward 0.750, best 0.750"
    assert drawn_lines(in_terminal)[-1] == want


def test_a_terminal_shows_the_first_iteration_at_once(in_terminal: str) -> None:
    assert drawn_lines(in_terminal)[0].split(" ", 1)[1].startswith("1/10 iterations, 0 of 4")


def test_a_terminal_shows_one_line_that_is_drawn_over(in_terminal: str) -> None:
    assert in_terminal.count("\n") == 1


def test_the_bar_leaves_the_cursor_on_a_new_line(in_terminal: str) -> None:
    assert in_terminal.endswith("\r\n")


@pytest.mark.parametrize("columns", [80, 40, 20])
def test_the_bar_never_wraps(columns: int) -> None:
    lines = drawn_lines(said_to_a_terminal(RUN, columns=columns))
    assert max(map(len, lines)) < columns


def test_the_bar_is_closed_when_the_agent_raises() -> None:
    said = said_to_a_terminal(
        """
def failing_agent(history, task):
    if len(history) == 2:
        raise SystemExit
    return agent(history, task)

AgentTestLoop(run_tests, failing_agent, progress=True).run()
"""
    )
    assert re.search(r"2/10 iterations.*\r\n\Z", said)


IN_TERMINAL = """
def slow_agent(history, task):
    if len(history) == 2:
        print("under way", flush=True)
        time.sleep(60)
    return agent(history, task)

try:
    AgentTestLoop(run_tests, slow_agent, progress=True).run()
except KeyboardInterrupt as error:
    print(error.history)
"""


def test_ctrl_c_in_a_terminal_leaves_the_history_so_far() -> None:
    said = said_to_a_terminal(IN_TERMINAL, press_ctrl_c=True)
    assert "<History of 2 iterations, best reward 0.300, interrupted>" in said


def test_without_progress_a_terminal_shows_nothing() -> None:
    assert said_to_a_terminal("AgentTestLoop(run_tests, agent).run()") == ""


# -- in a log --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def in_log() -> list[str]:
    return said_to_a_file("AgentTestLoop(lambda code: suite_of(1), agent, 50, progress=True).run()")


def test_a_log_gets_a_line_each_time_a_tenth_more_is_done(in_log: str) -> None:
    done = re.findall(r"(\d+)/50 iterations", in_log)
    assert [int(n) * 10 // 50 for n in done] == sorted({int(n) * 10 // 50 for n in done})


def test_a_log_gets_the_last_state(in_log: str) -> None:
    assert in_log.splitlines()[-1].startswith("testgrad: 50/50 iterations, 1 of 4 tests pass")


def test_a_log_gets_no_terminal_codes(in_log: str) -> None:
    assert not re.search(r"[\r\x1b█░]", in_log)


def test_a_log_says_each_state_once(in_log: str) -> None:
    assert len(set(in_log.splitlines())) == len(in_log.splitlines())


def test_a_run_that_ends_early_says_its_last_state_in_a_log() -> None:
    last = said_to_a_file(RUN).splitlines()[-1]
    assert last == "testgrad: 5/10 iterations, 4 of 4 tests pass, reward 0.750, best 0.750"


def test_a_run_that_does_nothing_says_nothing() -> None:
    script = """
def failing_agent(history, task):
    raise SystemExit

AgentTestLoop(run_tests, failing_agent, progress=True).run()
"""
    assert said_to_a_file(script) == ""


def test_a_resumed_run_goes_on_counting(tmp_path: Path) -> None:
    journal = str(tmp_path / "run.jsonl")
    script = f"""
AgentTestLoop(run_tests, agent, 2, journal={journal!r}).run()
AgentTestLoop(run_tests, agent, 9, journal={journal!r}, progress=True).resume()
"""
    assert said_to_a_file(script).startswith("testgrad: 3/9 iterations")


def test_run_many_shows_one_bar_for_all_tasks() -> None:
    said = said_to_a_file("AgentTestLoop(run_tests, agent, progress=True).run_many(range(3))")
    assert said.endswith("testgrad: 3/3 tasks, 3 passed, 15 iterations\n")


# -- in a notebook ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def notebook() -> Any:
    """A notebook after it ran: a loop with a bar, its history, and one that is not finished."""
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat.v4")
    cells = [
        SETUP,
        "history = " + RUN,
        "history",
        "history[0].suite_result",
        "x = await AgentTestLoop(run_tests, agent).arun()\nprint(x)",
    ]
    notebook = nbformat.new_notebook(cells=[nbformat.new_code_cell(cell) for cell in cells])
    return nbclient.NotebookClient(notebook, timeout=LIMIT_S, kernel_name="python3").execute()


def outputs(notebook: Any, cell: int, kind: str) -> list[str]:
    return [out["data"].get(kind, "") for out in notebook.cells[cell].outputs if "data" in out]


@pytest.mark.slow
def test_a_notebook_shows_one_bar_that_ends_full(notebook: Any) -> None:
    [shown] = outputs(notebook, 1, "text/html")
    assert shown == (
        '<progress value="0.5000" max="1" style="width:16em"></progress> '
        "5/10 iterations, 4 of 4 tests pass, reward 0.750, best 0.750"
    )


@pytest.mark.slow
def test_a_notebook_shows_the_history_as_a_table_with_a_curve(notebook: Any) -> None:
    [shown] = outputs(notebook, 2, "text/html")
    assert ("<table>" in shown, "<svg" in shown) == (True, True)


@pytest.mark.slow
def test_a_notebook_shows_a_suite_as_a_table(notebook: Any) -> None:
    [shown] = outputs(notebook, 3, "text/html")
    assert "test_0" in shown


@pytest.mark.slow
def test_a_notebook_can_await_a_loop(notebook: Any) -> None:
    [out] = notebook.cells[4].outputs
    assert out["text"].startswith("<History of 5 iterations")


class Kernel:
    """A notebook's kernel, without the notebook."""

    def __init__(self) -> None:
        jupyter_client = pytest.importorskip("jupyter_client")
        self.manager, self.client = jupyter_client.manager.start_new_kernel(
            startup_timeout=LIMIT_S, kernel_name="python3"
        )

    def start(self, code: str) -> None:
        # An interrupted cell would take the cells that wait behind it with it.
        self.client.execute(textwrap.dedent(code), stop_on_error=False)

    def wait_for_text(self, words: str) -> str:
        """What was printed, up to these words."""
        said, give_up = "", time.monotonic() + LIMIT_S
        while words not in said and time.monotonic() < give_up:
            message = self.client.get_iopub_msg(timeout=LIMIT_S)
            said += message["content"].get("text", "")
            said += "\n".join(message["content"].get("traceback", []))
        return said

    def stop(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.manager.cleanup_resources()


IN_CELL = {
    "run": "loop.run()",
    "run_many": "loop.run_many([1])",
    "arun": "await loop.arun()",
}


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    kernel = Kernel()
    try:
        kernel.start(SETUP)
        yield kernel
    finally:
        kernel.stop()


@pytest.fixture(scope="module", params=IN_CELL)
def interrupted_cell(request: pytest.FixtureRequest, kernel: Kernel) -> dict[str, Any]:
    """A cell that is interrupted while its agent is at work, and what the next cell sees."""
    kernel.start(
        f"""
        def slow_agent(history, task):
            if len(history) == 2:
                print("under way", flush=True)
                time.sleep(60)
            return agent(history, task)

        loop = AgentTestLoop(run_tests, slow_agent)
        try:
            {IN_CELL[request.param]}
        finally:
            came_back = time.monotonic()
        """
    )
    kernel.wait_for_text("under way")
    wait_until_asleep(kernel.manager.provisioner.pid)
    pressed_at = time.monotonic()
    kernel.manager.interrupt_kernel()
    kernel.start('print(loop.history, f"came back at {came_back}")')
    said = kernel.wait_for_text("came back at")
    return {"said": said, "latency_s": float(said.rpartition(" ")[2]) - pressed_at}


@pytest.mark.slow
def test_an_interrupted_cell_is_back_within_100_ms(interrupted_cell: dict[str, Any]) -> None:
    assert interrupted_cell["latency_s"] < 0.1


@pytest.mark.slow
def test_an_interrupted_cell_leaves_the_history_so_far(interrupted_cell: dict[str, Any]) -> None:
    assert "<History of 2 iterations, best reward 0.300, interrupted>" in interrupted_cell["said"]


@pytest.mark.slow
def test_an_interrupted_cell_ends_with_keyboard_interrupt(interrupted_cell: dict[str, Any]) -> None:
    assert re.search("KeyboardInterrupt|CancelledError", interrupted_cell["said"])
