"""What all tests share: how hypothesis runs, and a last word on what was left out."""

import signal
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "steady",
    database=None,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("explore", settings.get_profile("steady"), derandomize=False)
settings.load_profile("steady")

# A shell that starts us in the background tells us to ignore Ctrl-C, and our children inherit that;
# some of them are there to be interrupted.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says how many tests did not run for want of data, a package, or the kernel's help."""
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.getreports("skipped")
        if isinstance(report.longrepr, tuple)
    )
    if not reasons:
        return
    terminalreporter.section("left out")
    for reason, times in reasons.most_common():
        terminalreporter.line(f"{times} test{'s' if times > 1 else ''}: {reason}")
