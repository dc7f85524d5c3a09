//! Where the core's time goes, without Python: `cargo bench --bench core`.

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use testgrad::outcome::{About, SuiteResult, TestResult, TestStatus};
use testgrad::reward::batch::{Arrays, Previous, of_arrays};
use testgrad::reward::{DEFAULT_TARGET_MS, RewardWeights, Strategy, compute_reward_signal};

fn tests(n: usize) -> Vec<TestResult> {
    let status = |i: usize| if i.is_multiple_of(3) { TestStatus::Failed } else { TestStatus::Passed };
    (0..n).map(|i| TestResult::new(&format!("tests/test_a.py::test_{i}"), status(i))).collect()
}

fn benches(c: &mut Criterion) {
    let thousand = tests(1000);
    c.bench_function("suite of 1,000 tests", |b| {
        b.iter_batched(
            || thousand.clone(),
            |tests| SuiteResult::new(tests, About::named("s")),
            criterion::BatchSize::SmallInput,
        );
    });
    let suite = SuiteResult::new(tests(100), About::named("s")).ok();
    let weights = RewardWeights::default();
    c.bench_function("signal of 100 tests", |b| {
        b.iter(|| {
            let suite = black_box(suite.as_ref())?;
            compute_reward_signal(suite, None, None, DEFAULT_TARGET_MS, &weights).ok()
        });
    });
    let (rollouts, tests) = (10_000, 100);
    let status: Vec<u8> = (0..rollouts * tests).map(|i| (i % 4) as u8).collect();
    let duration_ms = vec![1.5; rollouts * tests];
    let arrays = Arrays {
        status: &status,
        rollouts,
        tests,
        severity: None,
        duration_ms: Some(&duration_ms),
        previous: Previous::None,
        coverage: None,
    };
    c.bench_function("arrays of 10,000 x 100", |b| {
        b.iter(|| of_arrays(black_box(&arrays), &Strategy::default()));
    });
}

criterion_group!(core, benches);
criterion_main!(core);
