//! The rewards of many suites at once, one row a suite: equal bit for bit to the scalar ones.
//!
//! Two ways in: suites, or arrays of status codes. The work is shared among threads made for the call, so
//! nothing outlives it and a forked child is as good as its parent.

use super::{COMPONENTS, Strategy};
use crate::outcome::{Error, LaneSum, SuiteResult, Tally, TestStatus};

/// A status code that means: this suite could not be judged; its row becomes NaN.
pub const NO_VERDICT: u8 = 254;
/// A status code that means: this suite has no such test (padding).
pub const ABSENT: u8 = 255;

const PASSED: u8 = TestStatus::Passed as u8;
const SKIPPED: u8 = TestStatus::Skipped as u8;

/// What each suite is compared with for its progression.
#[derive(Clone, Copy, Debug)]
pub enum Previous<'a> {
    /// There was nothing before.
    None,
    /// Status codes of the suites before: one row for each suite, or a single row for all of them.
    Status(&'a [u8]),
    /// Pass rates before, one a suite; NaN where there was nothing.
    PassRate(&'a [f64]),
}

/// Many runs of the same tests. Rows are suites, columns are tests.
#[derive(Clone, Copy, Debug)]
pub struct Arrays<'a> {
    /// Status codes, row by row.
    pub status: &'a [u8],
    /// How many suites.
    pub rollouts: usize,
    /// How many tests.
    pub tests: usize,
    /// Severity weights 1..3, one a test; `None` means MAJOR for all.
    pub severity: Option<&'a [u8]>,
    /// Durations in milliseconds, shaped like `status`; `None` means no time.
    pub duration_ms: Option<&'a [f64]>,
    /// What came before.
    pub previous: Previous<'a>,
    /// Coverage, one a suite, NaN where not measured.
    pub coverage: Option<&'a [f64]>,
}

/// Components (row by row) and totals.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rewards {
    /// Five numbers a suite, in the order of `RewardWeights`.
    pub components: Vec<f64>,
    /// One number a suite.
    pub totals: Vec<f64>,
}

enum Row {
    Judged(Tally),
    NoVerdict,
}

/// The rewards of suites; `None` in the place of a suite gives a row of NaN.
///
/// `previous` holds one suite or `None` for each suite.
pub fn of_suites(
    suites: &[Option<SuiteResult>],
    previous: Option<&[Option<SuiteResult>]>,
    coverage: Option<&[f64]>,
    strategy: &Strategy,
) -> Result<Rewards, Error> {
    let rollouts = suites.len();
    check_len("previous", previous.map(<[_]>::len), rollouts)?;
    check_len("coverage", coverage.map(<[_]>::len), rollouts)?;
    in_parallel(rollouts, suites.iter().flatten().count() * 32, |row| {
        let Some(Some(suite)) = suites.get(row) else {
            return Ok(([f64::NAN; COMPONENTS], f64::NAN));
        };
        let before = previous.and_then(|p| p.get(row)?.as_ref()).map(|p| p.tally().pass_rate());
        let covered = match measured(coverage, row)? {
            Some(covered) => covered,
            None => suite.about().coverage.unwrap_or(0.0),
        };
        Ok(strategy.of_tally(suite.tally(), suite.all_passed(), before, covered))
    })
}

/// The rewards of arrays of status codes.
pub fn of_arrays(arrays: &Arrays<'_>, strategy: &Strategy) -> Result<Rewards, Error> {
    let Arrays { rollouts, tests, .. } = *arrays;
    let cells = rollouts * tests;
    check_len("status", Some(arrays.status.len()), cells)?;
    check_len("severity", arrays.severity.map(<[_]>::len), tests)?;
    check_len("duration_ms", arrays.duration_ms.map(<[_]>::len), cells)?;
    check_len("coverage", arrays.coverage.map(<[_]>::len), rollouts)?;
    let (ones, before_all) = check_previous(arrays)?;
    let severity = match arrays.severity {
        Some(given) => check_severity(given)?,
        None => &ones,
    };
    in_parallel(rollouts, cells, |row| {
        let cells_of_row = row * tests..(row + 1) * tests;
        let status = arrays.status.get(cells_of_row.clone()).unwrap_or_default();
        let duration = arrays.duration_ms.and_then(|d| d.get(cells_of_row.clone()));
        let Row::Judged(now) = tally("status", row, status, severity, duration)? else {
            return Ok(([f64::NAN; COMPONENTS], f64::NAN));
        };
        let before = match arrays.previous {
            Previous::PassRate(rates) => previous_rate(rates, row)?,
            Previous::Status(codes) if codes.len() == cells && rollouts != 1 => {
                pass_rate_of(row, codes.get(cells_of_row).unwrap_or_default(), severity)?
            }
            _ => before_all,
        };
        let covered = measured(arrays.coverage, row)?.unwrap_or(0.0);
        Ok(strategy.of_tally(&now, now.all_passed(), before, covered))
    })
}

/// Checks the shape of what came before; returns MAJOR weights and the pass rate of a single previous row.
fn check_previous(arrays: &Arrays<'_>) -> Result<(Vec<u8>, Option<f64>), Error> {
    let Arrays { rollouts, tests, .. } = *arrays;
    let weights = vec![2; tests];
    match arrays.previous {
        Previous::PassRate(rates) => check_len("previous", Some(rates.len()), rollouts)?,
        Previous::Status(codes) if codes.len() == tests => {
            return pass_rate_of(0, codes, &weights).map(|rate| (weights, rate));
        }
        Previous::Status(codes) => check_len("previous", Some(codes.len()), rollouts * tests)?,
        Previous::None => {}
    }
    Ok((weights, None))
}

fn check_severity(severity: &[u8]) -> Result<&[u8], Error> {
    match severity.iter().position(|s| !(1..=3).contains(s)) {
        None => Ok(severity),
        Some(column) => Err(Error::Mismatch {
            argument: "severity",
            problem: format!("column {column} is not 1 (minor), 2 (major) or 3 (critical)"),
        }),
    }
}

fn pass_rate_of(row: usize, codes: &[u8], severity: &[u8]) -> Result<Option<f64>, Error> {
    Ok(match tally("previous", row, codes, severity, None)? {
        Row::Judged(before) => Some(before.pass_rate()),
        Row::NoVerdict => None,
    })
}

fn previous_rate(rates: &[f64], row: usize) -> Result<Option<f64>, Error> {
    match rates.get(row) {
        Some(rate) if rate.is_nan() => Ok(None),
        Some(rate) if (0.0..=1.0).contains(rate) => Ok(Some(*rate)),
        _ => Err(Error::Mismatch {
            argument: "previous",
            problem: format!("row {row} is not a pass rate between 0 and 1, or NaN for none"),
        }),
    }
}

fn measured(coverage: Option<&[f64]>, row: usize) -> Result<Option<f64>, Error> {
    match coverage.and_then(|c| c.get(row)) {
        Some(value) if value.is_nan() => Ok(None),
        Some(value) if (0.0..=1.0).contains(value) => Ok(Some(value + 0.0)),
        Some(value) => Err(Error::Mismatch {
            argument: "coverage",
            problem: format!("row {row} must be between 0 and 1, got {value}"),
        }),
        None => Ok(None),
    }
}

fn check_len(argument: &'static str, got: Option<usize>, want: usize) -> Result<(), Error> {
    match got {
        Some(got) if got != want => Err(Error::Mismatch {
            argument,
            problem: format!("has {got} elements where the other arguments ask for {want}"),
        }),
        _ => Ok(()),
    }
}

/// The tally of one row. Codes above 3 send it down the careful way.
#[inline]
fn tally(
    argument: &'static str,
    row: usize,
    status: &[u8],
    severity: &[u8],
    duration: Option<&[f64]>,
) -> Result<Row, Error> {
    let mut highest = 0_u8;
    let (mut passed, mut skipped, mut passed_weight, mut active_weight) = (0_u32, 0_u32, 0_u32, 0_u32);
    // Sixty-four cells at a time fit sums of weights up to 3 into a byte, which the compiler can do in lanes.
    for (codes, weights) in status.chunks(64).zip(severity.chunks(64)) {
        let (mut p, mut s, mut pw, mut aw) = (0_u8, 0_u8, 0_u8, 0_u8);
        for (code, weigh) in codes.iter().zip(weights) {
            let is_passed = u8::from(*code == PASSED);
            let is_skipped = u8::from(*code == SKIPPED);
            highest = highest.max(*code);
            p = p.wrapping_add(is_passed);
            s = s.wrapping_add(is_skipped);
            pw = pw.wrapping_add(weigh & is_passed.wrapping_neg());
            aw = aw.wrapping_add(weigh & !is_skipped.wrapping_neg());
        }
        passed += u32::from(p);
        skipped += u32::from(s);
        passed_weight += u32::from(pw);
        active_weight += u32::from(aw);
    }
    if highest > SKIPPED {
        return careful_tally(argument, row, status, severity, duration);
    }
    let (duration_ms, is_fine) = duration.map_or((0.0, true), LaneSum::of_durations);
    if !is_fine {
        check_durations(row, duration.unwrap_or_default())?;
    }
    let tally = Tally {
        passed,
        failed: status.len() as u32 - passed - skipped,
        errors: 0, // no reward tells a failure from an error
        skipped,
        passed_weight: passed_weight.into(),
        active_weight: active_weight.into(),
        duration_ms,
    };
    Ok(Row::Judged(tally))
}

/// Names the first duration that is not finite and >= 0; a sum of finite ones may still be infinite.
#[cold]
fn check_durations(row: usize, durations: &[f64]) -> Result<(), Error> {
    match durations.iter().position(|d| !(d.is_finite() && *d >= 0.0)) {
        None => Ok(()),
        Some(column) => Err(Error::Mismatch {
            argument: "duration_ms",
            problem: format!("row {row}, column {column} is not finite and >= 0"),
        }),
    }
}

#[cold]
fn careful_tally(
    argument: &'static str,
    row: usize,
    status: &[u8],
    severity: &[u8],
    duration: Option<&[f64]>,
) -> Result<Row, Error> {
    let mut codes = Vec::with_capacity(status.len());
    let mut weights = Vec::with_capacity(status.len());
    let mut durations = Vec::with_capacity(status.len());
    for (column, (code, weight)) in status.iter().zip(severity).enumerate() {
        match *code {
            ABSENT => continue,
            NO_VERDICT => return Ok(Row::NoVerdict),
            0..=SKIPPED => {}
            other => return Err(unknown_code(argument, row, column, other)),
        }
        codes.push(*code);
        weights.push(*weight);
        durations.extend(duration.and_then(|d| d.get(column)));
    }
    tally(argument, row, &codes, &weights, duration.map(|_| &*durations))
}

/// Names the first cell that holds no status code.
pub(super) fn check_codes(status: &[u8], tests: usize) -> Result<(), Error> {
    let fine = |code: &u8| *code <= SKIPPED || *code >= NO_VERDICT;
    match status.iter().position(|code| !fine(code)) {
        None => Ok(()),
        Some(at) => {
            let (row, column) = (at.checked_div(tests).unwrap_or(0), at.checked_rem(tests).unwrap_or(0));
            Err(unknown_code("status", row, column, status.get(at).copied().unwrap_or(0)))
        }
    }
}

fn unknown_code(argument: &'static str, row: usize, column: usize, code: u8) -> Error {
    Error::Mismatch {
        argument,
        problem: format!(
            "row {row}, column {column}: {code} is not 0 (passed), 1 (failed), 2 (error), 3 (skipped), \
             254 (no verdict) or 255 (absent)"
        ),
    }
}

/// Fewer cells than this are done at once: a thread costs more.
const CELLS_PER_THREAD: usize = 1 << 17;

fn in_parallel(
    rollouts: usize,
    cells: usize,
    of_row: impl Fn(usize) -> Result<([f64; COMPONENTS], f64), Error> + Sync,
) -> Result<Rewards, Error> {
    let mut rewards = Rewards { components: vec![0.0; rollouts * COMPONENTS], totals: vec![0.0; rollouts] };
    let threads =
        std::thread::available_parallelism().map_or(1, usize::from).min(1 + cells / CELLS_PER_THREAD);
    let rows_each = rollouts.div_ceil(threads).max(1);
    let fill = |start: usize, components: &mut [f64], totals: &mut [f64]| -> Result<(), Error> {
        let (rows, _) = components.as_chunks_mut::<COMPONENTS>();
        for (row, (five, total)) in rows.iter_mut().zip(totals).enumerate() {
            (*five, *total) = of_row(start + row)?;
        }
        Ok(())
    };
    let mut parts = rewards
        .components
        .chunks_mut(rows_each * COMPONENTS)
        .zip(rewards.totals.chunks_mut(rows_each))
        .enumerate()
        .map(|(i, (components, totals))| (i * rows_each, components, totals));
    let fill = &fill;
    std::thread::scope(|scope| {
        let first = parts.next();
        let others: Vec<_> = parts
            .map(|(start, components, totals)| scope.spawn(move || fill(start, components, totals)))
            .collect();
        let mut done = first.map_or(Ok(()), |(start, components, totals)| fill(start, components, totals));
        for other in others {
            let result = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            done = done.and(result);
        }
        done
    })?;
    Ok(rewards)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{About, TestResult, TestSeverity};
    use crate::reward::{Binary, Curriculum, Gated, MultiSignal, PassRate, Progression, SeverityWeighted};
    use proptest::prelude::any;
    use proptest::{prop_assert_eq, proptest};

    fn strategies() -> Vec<Strategy> {
        let curriculum = Curriculum::new(0.5, crate::reward::RewardWeights::default(), 300.0).unwrap();
        vec![
            Binary {}.into(),
            PassRate {}.into(),
            SeverityWeighted {}.into(),
            Progression {}.into(),
            MultiSignal::default().into(),
            Gated::default().into(),
            curriculum.into(),
        ]
    }

    fn arrays<'a>(status: &'a [u8], rollouts: usize, tests: usize) -> Arrays<'a> {
        Arrays {
            status,
            rollouts,
            tests,
            severity: None,
            duration_ms: None,
            previous: Previous::None,
            coverage: None,
        }
    }

    fn suite(codes: &[u8], severity: &[u8], durations: &[f64], coverage: f64) -> SuiteResult {
        let tests = codes.iter().zip(severity).zip(durations).filter(|((c, _), _)| **c != ABSENT);
        let tests = tests.map(|((code, severity), ms)| {
            TestResult::new("t", TestStatus::ALL[usize::from(*code)])
                .with_severity(TestSeverity::from_weight((*severity).into()).unwrap())
                .with_duration_ms(*ms)
                .unwrap()
        });
        SuiteResult::new(tests.collect(), About { coverage: Some(coverage), ..About::named("s") }).unwrap()
    }

    proptest! {
        #[test]
        fn arrays_equal_suites_bit_for_bit(
            (rollouts, tests) in (1_usize..6, 0_usize..150), seed in any::<u64>(), absent in any::<bool>(),
        ) {
            let mut state = seed | 1;
            let mut next = || { state ^= state << 13; state ^= state >> 7; state ^= state << 17; state };
            let cells = rollouts * tests;
            let status: Vec<u8> = (0..cells)
                .map(|_| match next() % 9 { 8 if absent => ABSENT, n => (n % 4) as u8 }).collect();
            let before: Vec<u8> = (0..cells).map(|_| (next() % 4) as u8).collect();
            let severity: Vec<u8> = (0..tests).map(|_| (1 + next() % 3) as u8).collect();
            let durations: Vec<f64> = (0..cells).map(|_| (next() % 1000) as f64 / 7.0).collect();
            let coverage: Vec<f64> = (0..rollouts).map(|_| (next() % 100) as f64 / 99.0).collect();
            let given = Arrays {
                severity: Some(&severity), duration_ms: Some(&durations), previous: Previous::Status(&before),
                coverage: Some(&coverage), ..arrays(&status, rollouts, tests)
            };
            let rows = |codes: &[u8]| -> Vec<Option<SuiteResult>> {
                (0..rollouts).map(|r| {
                    let cells = r * tests..(r + 1) * tests;
                    Some(suite(&codes[cells.clone()], &severity, &durations[cells], coverage[r]))
                }).collect()
            };
            let (now, previous) = (rows(&status), rows(&before));
            for strategy in strategies() {
                let from_arrays = of_arrays(&given, &strategy).unwrap();
                let from_suites = of_suites(&now, Some(&previous), None, &strategy).unwrap();
                for r in 0..rollouts {
                    let one = strategy.signal(now[r].as_ref().unwrap(), previous[r].as_ref(), None).unwrap();
                    let five = &from_arrays.components[r * 5..r * 5 + 5];
                    prop_assert_eq!(five, &one.components()[..]);
                    prop_assert_eq!(from_arrays.totals[r].to_bits(), one.total.to_bits());
                }
                prop_assert_eq!(from_arrays, from_suites);
            }
        }
    }

    #[test]
    fn no_verdict_is_nan_and_never_zero() {
        let status = [0, 0, NO_VERDICT, 0];
        let rewards = of_arrays(&arrays(&status, 2, 2), &Strategy::default()).unwrap();
        assert!(rewards.totals[0] > 0.0);
        assert!(rewards.totals[1].is_nan() && rewards.components[5..].iter().all(|c| c.is_nan()));
        let none = of_suites(&[None], None, None, &Strategy::default()).unwrap();
        assert!(none.totals[0].is_nan());
    }

    #[test]
    fn a_wrong_code_is_named_by_row_and_column() {
        let error = of_arrays(&arrays(&[0, 1, 2, 9], 2, 2), &Strategy::default()).unwrap_err();
        assert!(error.to_string().starts_with("status: row 1, column 1: 9 is not"), "{error}");
    }

    #[test]
    fn a_nan_or_negative_duration_is_refused() {
        for bad in [f64::NAN, -1.0, f64::INFINITY] {
            let durations = [1.0, bad];
            let given = Arrays { duration_ms: Some(&durations), ..arrays(&[0, 0], 1, 2) };
            assert!(of_arrays(&given, &Strategy::default()).is_err());
        }
    }

    #[test]
    fn many_threads_fill_every_row() {
        let (rollouts, tests) = (5000, 100);
        let status = vec![0_u8; rollouts * tests];
        let rewards = of_arrays(&arrays(&status, rollouts, tests), &Binary {}.into()).unwrap();
        assert!(rewards.totals.iter().all(|t| *t == 1.0));
    }
}
