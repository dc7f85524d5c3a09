"""Generated suites for hypothesis, and the oracle's twin of each value."""

import struct

from hypothesis import strategies as st

import reference
from testgrad import (
    Binary,
    Curriculum,
    Gated,
    MultiSignal,
    PassRate,
    Progression,
    RewardWeights,
    SeverityWeighted,
    SuiteResult,
    TestResult,
    TestSeverity,
    TestStatus,
)

NO_PROBLEMS = st.just(())
STATUSES = list(TestStatus)
SEVERITIES = list(TestSeverity)

# Names, messages and the like as Rust can hold them; surrogates have tests of their own.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
durations = st.one_of(st.just(0.0), st.floats(0.0, 1e4), st.sampled_from([5e-324, 1.0, 1e300]))
shares = st.floats(0.0, 1.0)
weights = st.builds(RewardWeights, *[st.floats(0.0, 10.0)] * 5)
targets = st.floats(1e-3, 1e6)


@st.composite
def suites(draw, max_size=12, problems=NO_PROBLEMS):
    """Suites of a few tests with unique names."""
    rows = draw(
        st.lists(
            st.tuples(st.sampled_from(STATUSES), st.sampled_from(SEVERITIES), durations),
            max_size=max_size,
        )
    )
    tests = [
        TestResult(f"test_{number}", status, severity, duration_ms=duration_ms)
        for number, (status, severity, duration_ms) in enumerate(rows)
    ]
    return SuiteResult(tests, coverage=draw(st.none() | shares), problems=draw(problems))


def random_suite(random, max_size=40):
    """A suite from a `random.Random`: for sweeps that would take hypothesis too long."""
    favoured = random.choice(STATUSES)
    tests = [
        TestResult(
            f"test_{number}",
            favoured if random.random() < 0.6 else random.choice(STATUSES),
            random.choice(SEVERITIES),
            duration_ms=random.choice([0.0, random.expovariate(0.01)]),
        )
        for number in range(random.randrange(max_size + 1))
    ]
    return SuiteResult(
        tests,
        coverage=random.choice([None, random.random()]),
        problems=random.choice([(), (), (), ("a hook failed",)]),
    )


def suite_of(statuses, *, severity="major", duration_ms=0.0, **about):
    """A suite from a word of letters, one a test: p(assed), f(ailed), e(rror), s(kipped)."""
    words = {"p": "passed", "f": "failed", "e": "error", "s": "skipped"}
    tests = [
        TestResult(f"test_{number}", words[letter], severity, duration_ms=duration_ms)
        for number, letter in enumerate(statuses)
    ]
    return SuiteResult(tests, **about)


def all_strategies(weights=None, target_ms=1000.0, threshold=0.8):
    """One of each strategy, paired with its twin."""
    ours = weights or RewardWeights()
    theirs = twin_weights(ours)
    return [
        (Binary(), reference.Binary()),
        (PassRate(), reference.PassRate()),
        (SeverityWeighted(), reference.SeverityWeighted()),
        (Progression(), reference.Progression()),
        (MultiSignal(ours, target_ms), reference.MultiSignal(theirs, target_ms)),
        (Gated(ours, target_ms), reference.Gated(theirs, target_ms)),
        (
            Curriculum(threshold, ours, target_ms),
            reference.Curriculum(theirs, target_ms, threshold),
        ),
    ]


def twin_test(test):
    return reference.TestResult(
        test.name,
        test.status,
        test.severity,
        test.message,
        test.duration_ms,
        test.details,
        test.reason,
        test.file,
        test.line,
    )


def twin_suite(suite):
    """The suite as the oracle's dataclass; None stays None."""
    if suite is None:
        return None
    return reference.SuiteResult(
        tuple(twin_test(test) for test in suite),
        suite.suite_name,
        suite.coverage,
        suite.duration_ms,
        suite.problems,
        suite.warnings,
        suite.hidden,
        suite.trust,
    )


def twin_weights(weights):
    return reference.RewardWeights(
        weights.pass_rate, weights.severity, weights.progression, weights.coverage, weights.speed
    )


FIELDS = (
    "pass_rate",
    "severity_score",
    "progression",
    "coverage_score",
    "speed_score",
    "total",
)


def numbers(signal):
    """A signal of either kind as a tuple."""
    return tuple(getattr(signal, field) for field in FIELDS)


def bits(*values):
    """Floats as their bits, so that equal means equal to the last one."""
    return [struct.unpack("<Q", struct.pack("<d", value))[0] for value in values]
