//! Whether a function returned what a test expects.
//!
//! One pass over both values, in the order of the expected one; `multiset` does what has no order.

use std::cell::Cell;
use std::hash::RandomState;

use super::multiset::{Index, as_double, exact_digits};
use super::repr::SHORT;
use super::{Place, Value};
use crate::runner::compare::{Excerpt, around_difference, cut, is_close, is_coarse};

const SENTENCE_CHARS: usize = 200;
/// So many values are looked at before a matching is given up; without one none is looked at twice.
const MAX_STEPS: u64 = 100_000_000;

/// When two values are the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agreement {
    /// None: bool, int and float are three kinds, and 1, 1.0 and True three values. A number: ints and
    /// floats a and b are the same when |a - b| <= tolerance * max(1, |b|), b the expected one; bools stay
    /// apart. Keys of dicts have no tolerance, but 1 and 1.0 are the same key then.
    pub tolerance: Option<f64>,
    /// Whether the outermost list or tuple may have any order.
    pub unordered: bool,
    /// Whether NaN is the same as NaN: what a test that expects NaN wants. It is never a number.
    pub nan_equal: bool,
    /// Whether a list is the same as a tuple of the same items: for expected values that came from JSON.
    pub sequences_equal: bool,
}

impl Default for Agreement {
    /// Exact, in order, NaN as NaN, lists apart from tuples.
    fn default() -> Self {
        Self { tolerance: None, unordered: false, nan_equal: true, sequences_equal: false }
    }
}

impl Agreement {
    /// The items of two sequences that may be the same.
    fn sequences<'a>(&self, actual: &'a Value, expected: &'a Value) -> Option<(&'a [Value], &'a [Value])> {
        match (actual, expected) {
            (Value::List(a), Value::List(b)) | (Value::Tuple(a), Value::Tuple(b)) => Some((a, b)),
            (Value::List(a), Value::Tuple(b)) | (Value::Tuple(a), Value::List(b)) if self.sequences_equal => {
                Some((a, b))
            }
            _ => None,
        }
    }
}

/// Whether `actual` is what was expected; the error is a sentence that names the first difference.
///
/// The order of dicts and sets never counts, and a set is the same as a frozenset of the same items, as in
/// Python. `Other` equals nothing. Ints beyond the range of a double have no tolerance.
pub fn agree(actual: &Value, expected: &Value, how: &Agreement) -> Result<(), String> {
    let judge = Judge { how, steps: &Cell::new(MAX_STEPS), seed: &RandomState::new() };
    let verdict = match how.sequences(actual, expected) {
        Some((actual, expected)) if how.unordered => judge.in_any_order(actual, expected),
        _ => judge.agree(actual, expected),
    };
    verdict.map_err(|difference| difference.sentence())
}

/// The first difference, and where it is.
pub(super) struct Difference<'a> {
    place: Place,
    kind: Kind<'a>,
}

pub(super) enum Kind<'a> {
    Differs { expected: &'a Value, actual: &'a Value },
    Missing(&'a Value),
    Unexpected(&'a Value),
    TooManyToMatch(usize),
    TooMuchToMatch,
}

impl<'a> From<Kind<'a>> for Difference<'a> {
    fn from(kind: Kind<'a>) -> Self {
        Self { place: Place::default(), kind }
    }
}

impl Difference<'_> {
    fn sentence(&self) -> String {
        let words = match self.kind {
            Kind::Differs { expected, actual } => expected_got(expected, actual),
            Kind::Missing(value) => format!("{} is missing", value.short(SHORT)),
            Kind::Unexpected(value) => format!("{} is not expected", value.short(SHORT)),
            Kind::TooManyToMatch(items) => {
                format!("{items} items are too many to match with a tolerance")
            }
            Kind::TooMuchToMatch => "too much to match with a tolerance".to_owned(),
        };
        cut(format!("{}{words}", self.place.prefix()), SENTENCE_CHARS)
    }
}

/// Two values that differ, as `expected 3, got 4`; of long texts and numbers the part that differs.
fn expected_got(expected: &Value, actual: &Value) -> String {
    if let (Value::Str(_), Value::Str(_))
    | (Value::Bytes(_), Value::Bytes(_))
    | (Value::Int(_), Value::Int(_)) = (expected, actual)
    {
        let (expected, actual) = (expected.to_string(), actual.to_string());
        let (expected, actual) = around_difference(expected.as_bytes(), actual.as_bytes());
        let shown = |excerpt: Excerpt<'_>| excerpt.dotted(&excerpt.lossy());
        return format!("expected {}, got {}", shown(expected), shown(actual));
    }
    format!("expected {}, got {}", expected.short(SHORT), actual.short(SHORT))
}

pub(super) type Verdict<'a> = Result<(), Difference<'a>>;

/// One comparison under way.
#[derive(Clone, Copy)]
pub(super) struct Judge<'j> {
    pub(super) how: &'j Agreement,
    /// How many more values may be looked at.
    pub(super) steps: &'j Cell<u64>,
    /// Unknown to the candidate, so that it cannot choose values with the same fingerprint.
    pub(super) seed: &'j RandomState,
}

impl Judge<'_> {
    pub(super) fn agree<'a>(&self, actual: &'a Value, expected: &'a Value) -> Verdict<'a> {
        let Some(steps) = self.steps.get().checked_sub(1) else {
            return Err(Kind::TooMuchToMatch.into());
        };
        self.steps.set(steps);
        if let Some((actual, expected)) = self.how.sequences(actual, expected) {
            return self.in_order(actual, expected);
        }
        let is_same = match (actual, expected) {
            (Value::None, Value::None) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Str(a), Value::Str(b)) => a == b,
            (Value::Bytes(a), Value::Bytes(b)) => a == b,
            (Value::Int(a), Value::Int(b)) if a == b => true,
            (Value::Float(a), Value::Float(b)) => self.is_same_float(*a, *b),
            (Value::Int(_) | Value::Float(_), Value::Int(_) | Value::Float(_)) => {
                self.is_same_number(actual, expected)
            }
            (Value::Complex(a_re, a_im), Value::Complex(b_re, b_im)) => {
                self.is_same_float(*a_re, *b_re) && self.is_same_float(*a_im, *b_im)
            }
            (Value::Set(a) | Value::FrozenSet(a), Value::Set(b) | Value::FrozenSet(b)) => {
                return self.in_any_order(a, b);
            }
            (Value::Dict(a), Value::Dict(b)) => return self.by_key(a, b),
            _ => false,
        };
        if is_same { Ok(()) } else { Err(Kind::Differs { expected, actual }.into()) }
    }

    fn is_same_float(&self, actual: f64, expected: f64) -> bool {
        actual == expected
            || (self.how.nan_equal && actual.is_nan() && expected.is_nan())
            || self.how.tolerance.is_some_and(|tolerance| is_close(actual, expected, tolerance))
    }

    /// The same for two ints that are not equal, or an int and a float.
    fn is_same_number(&self, actual: &Value, expected: &Value) -> bool {
        let (Some(tolerance), Some(a), Some(b)) =
            (self.how.tolerance, as_double(actual), as_double(expected))
        else {
            return false;
        };
        is_close(a, b, tolerance)
            && (a != b || is_coarse(tolerance) || exact_digits(actual) == exact_digits(expected))
    }

    fn in_order<'a>(&self, actual: &'a [Value], expected: &'a [Value]) -> Verdict<'a> {
        for (index, (a, b)) in actual.iter().zip(expected).enumerate() {
            self.agree(a, b).map_err(|mut difference| {
                difference.place.in_sequence(index);
                difference
            })?;
        }
        let common = actual.len().min(expected.len());
        let kind = match (actual.get(common), expected.get(common)) {
            (_, Some(missing)) => Kind::Missing(missing),
            (Some(unexpected), _) => Kind::Unexpected(unexpected),
            (None, None) => return Ok(()),
        };
        let mut difference = Difference::from(kind);
        difference.place.in_sequence(common);
        Err(difference)
    }

    fn by_key<'a>(&self, actual: &'a [(Value, Value)], expected: &'a [(Value, Value)]) -> Verdict<'a> {
        let exact = Agreement { tolerance: self.how.tolerance.and(Some(0.0)), ..*self.how };
        let keys = Judge { how: &exact, ..*self };
        let at_key = |key: &Value, mut difference: Difference<'a>| {
            difference.place.in_dict(key);
            difference
        };
        let mut index = Index::of(&keys, actual.iter().map(|(key, _)| key));
        for (key, wanted) in expected {
            let Some((_, got)) = index.take(&keys, key).and_then(|found| actual.get(found)) else {
                return Err(at_key(key, Kind::Missing(wanted).into()));
            };
            self.agree(got, wanted).map_err(|difference| at_key(key, difference))?;
        }
        match index.first_left().and_then(|left| actual.get(left)) {
            None => Ok(()),
            Some((key, value)) => Err(at_key(key, Kind::Unexpected(value).into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::value::MAX_DEPTH;

    const EXACT: Agreement =
        Agreement { tolerance: None, unordered: false, nan_equal: true, sequences_equal: false };
    const CLOSE: Agreement = Agreement { tolerance: Some(1e-6), ..EXACT };

    fn value(text: &str) -> Value {
        Value::parse(text.as_bytes()).unwrap()
    }

    /// The sentence; empty when the two agree.
    fn said(actual: &str, expected: &str, how: &Agreement) -> String {
        agree(&value(actual), &value(expected), how).err().unwrap_or_default()
    }

    fn is_same(actual: &str, expected: &str, how: &Agreement) -> bool {
        said(actual, expected, how).is_empty()
    }

    /// Values that all differ.
    const KINDS: [&str; 19] = [
        "null",
        "true",
        "1",
        "1.0",
        r#""1""#,
        r#"{"b":"31"}"#,
        "[]",
        r#"{"t":[]}"#,
        r#"{"s":[]}"#,
        r#"{"d":[]}"#,
        r#"{"c":[1.0,0.0]}"#,
        "false",
        "0",
        "0.0",
        r#""""#,
        "[1]",
        "[true]",
        r#"[{"t":[]}]"#,
        "[[]]",
    ];

    #[test]
    fn every_kind_is_its_own() {
        for (i, a) in KINDS.iter().enumerate() {
            for (j, b) in KINDS.iter().enumerate() {
                assert_eq!(is_same(a, b, &EXACT), i == j, "{a} {b}");
            }
        }
    }

    #[test]
    fn what_is_no_plain_data_equals_nothing() {
        let other = r#"{"o":"Anything"}"#;
        for kind in KINDS.iter().chain([&other]) {
            assert!(!is_same(other, kind, &EXACT) && !is_same(other, kind, &CLOSE));
        }
        assert_eq!(said(&format!("[{other}]"), "[1]", &EXACT), "at [0]: expected 1, got <Anything>");
        assert!(!is_same(r#"{"s":[{"o":"A"}]}"#, r#"{"s":[{"o":"A"}]}"#, &EXACT));
    }

    #[test]
    fn a_set_is_a_frozenset_of_the_same_items() {
        assert!(is_same(r#"{"fs":[1,2]}"#, r#"{"s":[2,1]}"#, &EXACT));
        assert!(is_same(r#"{"s":[{"fs":[1,2]},3]}"#, r#"{"s":[3,{"fs":[2,1]}]}"#, &EXACT));
    }

    #[test]
    fn a_tolerance_is_for_ints_and_floats() {
        for (actual, expected) in [
            ("1.0000001", "1.0"),
            ("1", "1.0"),
            ("1.0", "1"),
            ("1000000.5", "1000000"),
            ("[1e-7]", "[0]"),
            (r#"{"c":[1.0,1e-9]}"#, r#"{"c":[1.0,0.0]}"#),
            (r#"{"d":[["a",1.0000001]]}"#, r#"{"d":[["a",1]]}"#),
            (r#"{"s":[0.30000000000000004,2]}"#, r#"{"s":[2,0.3]}"#),
            (r#"{"d":[[1.0,2]]}"#, r#"{"d":[[1,2]]}"#),
        ] {
            assert!(is_same(actual, expected, &CLOSE), "{actual} {expected}");
            assert!(!is_same(actual, expected, &EXACT), "{actual} {expected}");
        }
        for (actual, expected) in [
            ("1.000002", "1.0"),
            ("true", "1"),
            ("1", "true"),
            (r#""1""#, "1"),
            (r#"{"d":[[1.0000001,2]]}"#, r#"{"d":[[1.0,2]]}"#),
            (r#"{"s":[1,1.0000001]}"#, r#"{"s":[1,2]}"#),
        ] {
            assert!(!is_same(actual, expected, &CLOSE), "{actual} {expected}");
        }
    }

    #[test]
    fn nan_and_infinity_are_only_themselves() {
        let (nan, inf, minus) = (r#"{"f":"nan"}"#, r#"{"f":"inf"}"#, r#"{"f":"-inf"}"#);
        let strict = Agreement { nan_equal: false, ..EXACT };
        for how in [EXACT, CLOSE, Agreement { tolerance: Some(f64::MAX), ..EXACT }] {
            for (i, a) in [nan, inf, minus, "1e308", "0.0", "0"].into_iter().enumerate() {
                for (j, b) in [nan, inf, minus].into_iter().enumerate() {
                    assert_eq!(is_same(a, b, &how), i == j, "{a} {b}");
                    assert_eq!(is_same(b, a, &how), i == j, "{a} {b}");
                }
            }
        }
        for wrapped in [nan.to_owned(), format!("{{\"s\":[{nan}]}}"), format!("{{\"c\":[1.0,{nan}]}}")] {
            assert!(is_same(&wrapped, &wrapped, &EXACT) && !is_same(&wrapped, &wrapped, &strict));
        }
        assert!(is_same("-0.0", "0.0", &EXACT) && is_same(r#"{"s":[-0.0]}"#, r#"{"s":[0.0]}"#, &EXACT));
    }

    #[test]
    fn ints_are_compared_to_the_last_digit_unless_the_tolerance_is_wider() {
        let (a, b) = ("9007199254740993", "9007199254740992");
        let none = Agreement { tolerance: Some(0.0), ..EXACT };
        for pair in [(a, b), (a, "9007199254740992.0")] {
            assert!(!is_same(pair.0, pair.1, &EXACT) && !is_same(pair.0, pair.1, &none));
            assert!(is_same(pair.0, pair.1, &CLOSE));
        }
        assert!(is_same(b, "9007199254740992.0", &none) && is_same("[1.0]", "[1]", &none));
        let key = |number: &str| format!("{{\"d\":[[{number},0]]}}");
        assert!(!is_same(&key(a), &key(b), &CLOSE) && is_same(&key(b), &key("9007199254740992.0"), &CLOSE));
        let huge = |last: &str| format!("[{}{last},{}]", "9".repeat(400), "1".repeat(400));
        assert!(is_same(&huge("1"), &huge("1"), &CLOSE) && !is_same(&huge("1"), &huge("2"), &CLOSE));
    }

    #[test]
    fn lists_and_tuples_can_be_the_same() {
        let equal = Agreement { sequences_equal: true, ..EXACT };
        let (list, tuple) = ("[[1],2]", r#"{"t":[{"t":[1]},2]}"#);
        assert!(is_same(list, tuple, &equal) && is_same(tuple, list, &equal));
        assert!(!is_same(list, tuple, &EXACT) && !is_same("[1]", r#"{"s":[1]}"#, &equal));
        let unordered = Agreement { unordered: true, ..equal };
        assert!(is_same(r#"{"t":[2,{"t":[1]}]}"#, list, &unordered));
        assert!(!is_same(r#"{"t":[2,1]}"#, "[1,2]", &Agreement { unordered: true, ..EXACT }));
    }

    #[test]
    fn the_order_of_dicts_and_sets_never_counts() {
        assert!(is_same(r#"{"d":[["a",1],[1,2]]}"#, r#"{"d":[[1,2],["a",1]]}"#, &EXACT));
        assert!(!is_same(r#"{"d":[["1",2]]}"#, r#"{"d":[[1,2]]}"#, &EXACT));
        assert!(!is_same(r#"{"d":[[1,2],[1,2]]}"#, r#"{"d":[[1,2]]}"#, &EXACT));
        assert!(!is_same(r#"{"d":[[1,2],[1,2]]}"#, r#"{"d":[[1,2],[2,2]]}"#, &EXACT));
        assert!(!is_same(r#"{"s":[1,1]}"#, r#"{"s":[1,2]}"#, &EXACT));
    }

    #[test]
    fn unordered_is_for_the_outermost_sequence() {
        for how in [EXACT, CLOSE] {
            let how = Agreement { unordered: true, ..how };
            assert!(is_same("[[1,2],[3],[1,2]]", "[[3],[1,2],[1,2]]", &how));
            assert!(!is_same("[[2,1],[3]]", "[[1,2],[3]]", &how));
            assert!(!is_same("[1,1,2]", "[1,2,2]", &how) && !is_same("[1,2]", "[1]", &how));
            assert!(is_same(r#"{"d":[["a",[1]]]}"#, r#"{"d":[["a",[1]]]}"#, &how));
        }
    }

    #[test]
    fn the_sentence_names_the_first_difference_and_its_place() {
        let dict = |inner: &str| format!("[0,0,{{\"d\":[[\"a\",{inner}]]}}]");
        assert_eq!(said(&dict("4"), &dict("3"), &EXACT), r#"at [2]["a"]: expected 3, got 4"#);
        assert_eq!(said("4", "3", &EXACT), "expected 3, got 4");
        assert_eq!(said("true", "1", &EXACT), "expected 1, got True");
        assert_eq!(said("[1,3]", "[1,2,3]", &EXACT), "at [1]: expected 2, got 3");
        assert_eq!(said("[1]", "[1,2]", &EXACT), "at [1]: 2 is missing");
        assert_eq!(said("[1,2]", "[1]", &EXACT), "at [1]: 2 is not expected");
        assert_eq!(said(r#"[{"s":[1,3]}]"#, r#"[{"s":[1,2]}]"#, &EXACT), "at [0]: 2 is missing");
        assert_eq!(said(r#"{"s":[1,3]}"#, r#"{"s":[1]}"#, &EXACT), "3 is not expected");
        assert_eq!(said(r#"{"s":[1,4]}"#, r#"{"s":[1,3]}"#, &CLOSE), "3 is missing");
        assert_eq!(said(r#"{"d":[]}"#, r#"{"d":[[{"t":[1]},2]]}"#, &EXACT), "at [(1,)]: 2 is missing");
        assert_eq!(said(r#"{"d":[["b",1]]}"#, r#"{"d":[]}"#, &EXACT), r#"at ["b"]: 1 is not expected"#);
        let long = |last: &str| format!("\"{}{last}\"", "x".repeat(1000));
        let x = "x".repeat(20);
        assert_eq!(said(&long("b"), &long("a"), &EXACT), format!("expected ...{x}a', got ...{x}b'"));
    }

    #[test]
    fn a_sentence_is_at_most_200_characters_long() {
        let long = |last: &str| format!("[{}{last}{}]", "[".repeat(150), "]".repeat(150));
        let text = "\\u0001".repeat(200);
        let sentence = said(&long(&format!("\"{text}\"")), &long(&format!("\"\\u0002{text}\"")), &EXACT);
        assert_eq!(sentence.chars().count(), SENTENCE_CHARS);
        assert!(sentence.starts_with("at ...[0]") && sentence.contains("expected '\\x02"));
    }

    #[test]
    fn a_hundred_thousand_items_take_time_in_proportion() {
        let many = |step: usize| {
            let items = (0..100_000_usize).map(|at| at * step % 100_000).map(|n| Value::Int(n.to_string()));
            items.collect::<Vec<_>>()
        };
        let (a, b) = (many(1), many(7));
        let pairs =
            |items: &[Value]| Value::Dict(items.iter().map(|key| (key.clone(), key.clone())).collect());
        for how in [EXACT, CLOSE] {
            assert_eq!(agree(&Value::Set(a.clone()), &Value::Set(b.clone()), &how), Ok(()));
            assert_eq!(agree(&pairs(&a), &pairs(&b), &how), Ok(()));
        }
        let same = Value::List(vec![Value::None; 100_000]);
        assert_eq!(agree(&same, &same, &Agreement { unordered: true, ..EXACT }), Ok(()));
    }

    #[test]
    fn the_deepest_values_fit_on_the_stack() {
        let around = |open: &str, close: &str| {
            let (open, close) = (open.repeat(MAX_DEPTH), close.repeat(MAX_DEPTH));
            value(&format!("{open}1{close}"))
        };
        for (open, close) in [("[", "]"), (r#"{"t":["#, "]}"), (r#"{"fs":["#, "]}"), (r#"{"d":[[0,"#, "]]}")]
        {
            let deep = around(open, close);
            for how in [EXACT, CLOSE, Agreement { unordered: true, ..CLOSE }] {
                assert_eq!(agree(&deep, &deep.clone(), &how), Ok(()));
            }
            assert_eq!(Value::parse(deep.to_json().as_bytes()).as_ref(), Ok(&deep));
        }
    }
}
