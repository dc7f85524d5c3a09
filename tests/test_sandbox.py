"""Every claim of containment is tried, with all mechanisms and with some switched off."""

import json
import os
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from testgrad import Limits, StdioRunner, cli, sandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="containment needs Linux")

NO_NAMESPACES = ("user", "pid", "mount", "network", "ipc", "uts")


@pytest.fixture(scope="module")
def level() -> str:
    return sandbox.examine().containment.level


def attempt(code: str, avoid: tuple[str, ...] = ()) -> str:
    """Run code that tries something: "held" when an OSError stopped it."""
    body = "\n".join("    " + line for line in code.splitlines())
    program = f"try:\n{body}\nexcept OSError as error:\n    print('held')\nelse:\n    print('fell')"
    return sandbox.examine(program, avoid=avoid).output.strip()


def full_or_skip(level: str) -> None:
    if level != "full":
        pytest.skip(f"this kernel grants only {level} containment")


@pytest.mark.parametrize("avoid", [(), NO_NAMESPACES], ids=["full", "no namespaces"])
class TestWhatAProgramCannotDo:
    @pytest.fixture(autouse=True)
    def _is_contained(self, level: str) -> None:
        if level == "weak":
            pytest.skip("this kernel has neither namespaces nor Landlock")

    def test_read_a_file_of_the_user(self, avoid: tuple[str, ...], tmp_path: Path) -> None:
        secret = tmp_path / "secret"
        secret.write_text("secret")
        assert attempt(f"print(open({str(secret)!r}).read())", avoid) == "held"

    def test_write_a_file_of_the_user(self, avoid: tuple[str, ...], tmp_path: Path) -> None:
        marker = tmp_path / "marker"
        assert attempt(f"open({str(marker)!r}, 'w')", avoid) == "held"
        assert not marker.exists()

    def test_reach_a_server_on_this_machine(self, avoid: tuple[str, ...]) -> None:
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            server.listen()
            server.settimeout(0)
            port = server.getsockname()[1]
            code = f"import socket\nsocket.create_connection(('127.0.0.1', {port}), 2)"
            assert attempt(code, avoid) == "held"
            with pytest.raises(BlockingIOError):
                server.accept()

    def test_reach_an_abstract_socket(self, avoid: tuple[str, ...]) -> None:
        name = f"\0testgrad-{os.getpid()}"
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(name)
            server.listen()
            code = f"import socket\nsocket.socket(socket.AF_UNIX).connect({name!r})"
            assert attempt(code, avoid) == "held"

    def test_signal_the_caller(self, avoid: tuple[str, ...]) -> None:
        assert attempt(f"import os\nos.kill({os.getpid()}, 0)", avoid) == "held"

    def test_read_the_environment_of_the_caller(self, avoid: tuple[str, ...]) -> None:
        assert attempt(f"open('/proc/{os.getpid()}/environ', 'rb').read(1)", avoid) == "held"

    def test_make_a_namespace(self, avoid: tuple[str, ...]) -> None:
        code = "import ctypes\nif ctypes.CDLL(None).unshare(0x10000000):\n    raise OSError"
        assert attempt(code, avoid) == "held"

    def test_trace_a_process(self, avoid: tuple[str, ...]) -> None:
        code = "import ctypes\nif ctypes.CDLL(None).ptrace(0, 0, 0, 0):\n    raise OSError"
        assert attempt(code, avoid) == "held"

    def test_leave_a_process_behind(self, avoid: tuple[str, ...]) -> None:
        word = f"testgrad-left-{os.getpid()}-{len(avoid)}"
        code = (
            "import subprocess, sys\n"
            f"run = [sys.executable, '-c', 'import time; time.sleep(60)', {word!r}]\n"
            "for new in (False, True):\n"
            "    try:\n"
            "        subprocess.Popen(run, start_new_session=new)\n"
            "    except PermissionError:\n"
            "        print('not left')\n"
        )
        found = sandbox.examine(code, avoid=avoid)
        assert found.output == ("not left\n" if avoid else "")
        places = Path("/proc").glob("[0-9]*/cmdline")
        assert [path for path in places if word.encode() in content(path)] == []

    def test_forge_what_holds_it(self, avoid: tuple[str, ...]) -> None:
        code = (
            "import os\nfor fd in range(64):\n    try:\n        os.write(fd, b'level forged\\n')\n"
        )
        code += "    except OSError:\n        pass"
        assert sandbox.examine(code, avoid=avoid).containment.level != "forged"

    def test_raise_a_limit_again(self, avoid: tuple[str, ...]) -> None:
        code = (
            "import resource as r\n"
            "try:\n"
            "    r.setrlimit(r.RLIMIT_AS, (r.RLIM_INFINITY, r.RLIM_INFINITY))\n"
            "except ValueError:\n"
            "    raise OSError"
        )
        assert attempt(code, avoid) == "held"

    def test_see_the_environment_or_descriptors(self, avoid: tuple[str, ...]) -> None:
        code = (
            "import os, json\n"
            "def is_open(fd):\n"
            "    try:\n"
            "        return bool(os.fstat(fd))\n"
            "    except OSError:\n"
            "        return False\n"
            "print(json.dumps([sorted(os.environ), [fd for fd in range(3, 200) if is_open(fd)]]))"
        )
        read, write = os.pipe()
        os.set_inheritable(read, True)
        try:
            names, descriptors = json.loads(sandbox.examine(code, avoid=avoid).output)
        finally:
            os.close(read)
            os.close(write)
        assert set(names) <= {"HOME", "LANG", "LC_CTYPE", "PATH", "TMPDIR"}
        assert descriptors == []


def test_honest_programs_find_what_they_need(level: str) -> None:
    full_or_skip(level)
    code = """
import multiprocessing.synchronize, os, subprocess, tempfile, threading
with tempfile.NamedTemporaryFile("w+") as file:
    file.write("x")
multiprocessing.Semaphore()
subprocess.run(["/bin/sh", "-c", "exit 0"], check=True)
thread = threading.Thread(target=print, args=("thread",))
thread.start()
thread.join()
open("/dev/null", "w").write("x")
print(os.getcwd(), os.cpu_count() >= 1)
"""
    assert sandbox.examine(code).output == "thread\n/box/work True\n"


def test_the_disk_has_an_end(level: str) -> None:
    full_or_skip(level)
    code = (
        "import os\n"
        "for number in range(4):\n"
        "    with open(f'/tmp/{number}', 'wb') as file:\n"
        "        for _ in range(100):\n"
        "            file.write(bytes(1 << 20))"
    )
    assert attempt(code) == "held"


def test_a_fork_bomb_meets_its_limit_and_leaves_nothing(level: str) -> None:
    full_or_skip(level)
    code = (
        "import os, time\n"
        "for _ in range(300):\n"
        "    if os.fork() == 0:\n"
        "        time.sleep(60)\n"
        "        os._exit(0)"
    )
    assert attempt(code) == "held"
    left = [path for path in Path("/proc").glob("[0-9]*/cmdline") if b"range(300)" in content(path)]
    assert left == []


def test_a_fork_bomb_takes_no_processes_from_another_worker() -> None:
    bomb = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass\n"
    hasty = StdioRunner([("", "")], limits=Limits(timeout_s=1.0))
    usual = StdioRunner([("", "1")])
    with ThreadPoolExecutor(1) as pool:
        bombed = pool.submit(hasty.run_many, [bomb] * 2, workers=1)
        while not bombed.done():
            assert usual("print(1)").all_passed
    assert [suite[0].reason for suite in bombed.result()] == ["timeout"] * 2


def content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_a_mechanism_that_is_switched_off_is_said_to_be() -> None:
    for name in ("network", "seccomp", "landlock"):
        layers = {layer.name: layer for layer in sandbox.examine(avoid=(name,)).containment.layers}
        assert layers[name].status != "enforced"
        assert layers["no_new_privs"].status == "enforced"


def test_a_mechanism_that_does_not_exist_is_named() -> None:
    with pytest.raises(sandbox.SandboxError, match=r'no mechanism "netwrok"; there is user, pid'):
        sandbox.examine(avoid=("netwrok",))


def test_nothing_is_left_in_the_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    sandbox.examine("open('/tmp/x', 'w').write('x')")
    assert list(tmp_path.iterdir()) == []


def test_doctor_says_the_level(capsys: pytest.CaptureFixture[str], level: str) -> None:
    assert cli.main(["doctor"]) == (1 if level == "weak" else 0)
    assert capsys.readouterr().out.splitlines()[-1] == f"containment: {level}"
    cli.main(["doctor", "--json"])
    data = json.loads(capsys.readouterr().out)
    assert data["level"] == level
    assert {"pid", "seccomp", "landlock"} <= {layer["name"] for layer in data["layers"]}


def test_what_is_allowed_falls() -> None:
    assert attempt("pass") == "fell"
