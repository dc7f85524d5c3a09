//! What a program printed against what it should have printed.
//!
//! Works on bytes and never fails on any; it knows nothing of processes. A difference is a sentence for the
//! feedback, at most 200 characters long, which names the first one.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::outcome::{Error, check_range};

/// The tolerance of `floats` unless the caller says otherwise.
pub const DEFAULT_TOLERANCE: f64 = 1e-6;

/// A difference is told in at most so many characters.
const SENTENCE_CHARS: usize = 200;
/// So many bytes of a text are shown, so many of them before the first difference.
const SHOWN: usize = 60;
const SHOWN_BEFORE: usize = 20;

/// When two outputs are the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Comparison {
    /// Byte for byte.
    Exact,
    /// Line by line; blanks at the end of a line (a carriage return is one) and empty lines at the end of
    /// the output do not count.
    Trimmed,
    /// Word by word, as Python's `bytes.split()` finds them: blanks and line ends only separate.
    Tokens,
    /// Word by word. Two finite decimal numbers are the same when |a - b| <= tolerance * max(1, |b|), where
    /// b is the expected one; everything else must be the same text. `nan` is the same as `nan` only, `inf`
    /// as an infinity of the same sign only, both in any case of letters. Numbers beyond the range of a
    /// double are text.
    Floats {
        /// Relative for numbers beyond 1, absolute for the others.
        tolerance: f64,
    },
    /// The lines of `Trimmed` in any order, each as often as it is expected.
    Unordered,
}

impl Comparison {
    /// The comparison called `name`; a tolerance is for `floats` only.
    pub fn parse(name: &str, tolerance: Option<f64>) -> Result<Self, Error> {
        let comparison = match name {
            "exact" => Self::Exact,
            "trimmed" => Self::Trimmed,
            "tokens" => Self::Tokens,
            "floats" => Self::Floats { tolerance: check_tolerance(tolerance.unwrap_or(DEFAULT_TOLERANCE))? },
            "unordered" => Self::Unordered,
            _ => {
                return Err(Error::UnknownWord {
                    argument: "compare",
                    allowed: "exact, trimmed, tokens, floats, unordered",
                    got: name.to_owned(),
                });
            }
        };
        match (tolerance, comparison) {
            (None, _) | (_, Self::Floats { .. }) => Ok(comparison),
            _ => Err(Error::Mismatch {
                argument: "tolerance",
                problem: format!("{name} has none; compare floats"),
            }),
        }
    }
}

/// Checks that a tolerance is finite and not negative.
pub fn check_tolerance(tolerance: f64) -> Result<f64, Error> {
    check_range("tolerance", ">= 0 and finite", 0.0.., tolerance)
}

/// Whether `actual` is what was expected; the error is a sentence that names the first difference.
///
/// Takes time in proportion to the two lengths and copies neither.
pub fn compare(actual: &[u8], expected: &[u8], how: &Comparison) -> Result<(), String> {
    if actual == expected {
        return Ok(());
    }
    let is_equal = |a: &[u8], b: &[u8]| a == b;
    let verdict = match *how {
        Comparison::Exact => in_order("line", whole_lines(actual), whole_lines(expected), is_equal),
        Comparison::Trimmed => in_order("line", lines(actual), lines(expected), is_equal),
        Comparison::Tokens => in_order("token", tokens(actual), tokens(expected), is_equal),
        Comparison::Floats { tolerance } => {
            let is_same = |a: &[u8], b: &[u8]| a == b || is_same_number(a, b, tolerance);
            in_order("token", tokens(actual), tokens(expected), is_same)
        }
        Comparison::Unordered => in_any_order(lines(actual), lines(expected)),
    };
    verdict.map_err(|sentence| cut(sentence, SENTENCE_CHARS))
}

/// Whether two numbers are so close that a test takes one for the other; never when either is not finite.
pub(super) fn is_close(actual: f64, expected: f64, tolerance: f64) -> bool {
    // With NaN every comparison is false, and two infinities differ by NaN or by infinity.
    let difference = (actual - expected).abs();
    difference.is_finite() && difference <= tolerance * expected.abs().max(1.0)
}

/// Whether a tolerance is so wide that numbers which doubles cannot tell apart are the same.
pub(super) fn is_coarse(tolerance: f64) -> bool {
    tolerance >= f64::EPSILON
}

/// A sentence of at most `chars` characters.
pub(super) fn cut(mut sentence: String, chars: usize) -> String {
    if let Some((at, _)) = sentence.char_indices().nth(chars) {
        let end = sentence.char_indices().nth(chars.saturating_sub(3)).map_or(at, |(end, _)| end);
        sentence.truncate(end);
        sentence.push_str("...");
    }
    sentence
}

/// What there is to see of two texts around their first difference.
pub(super) fn around_difference<'a>(expected: &'a [u8], actual: &'a [u8]) -> (Excerpt<'a>, Excerpt<'a>) {
    let at = expected.iter().zip(actual).take_while(|(a, b)| a == b).count();
    let longer = expected.len().max(actual.len());
    let start = if longer <= SHOWN { 0 } else { at.saturating_sub(SHOWN_BEFORE) };
    (Excerpt::new(expected, start), Excerpt::new(actual, start))
}

/// A part of a text.
pub(super) struct Excerpt<'a> {
    bytes: &'a [u8],
    is_first: bool,
    is_last: bool,
}

impl<'a> Excerpt<'a> {
    /// What can be shown from about `start` on, without cutting a character in two.
    fn new(text: &'a [u8], start: usize) -> Self {
        let is_inner = |at: usize| text.get(at).is_some_and(|byte| byte & 0xC0 == 0x80);
        let whole = |at: usize| (at.saturating_sub(3)..=at).rev().find(|&at| !is_inner(at)).unwrap_or(at);
        let start = whole(start.min(text.len()));
        let end = whole(start.saturating_add(SHOWN).min(text.len()));
        let bytes = text.get(start..end).unwrap_or_default();
        Self { bytes, is_first: start == 0, is_last: end == text.len() }
    }

    /// The text, with dots where it goes on.
    pub(super) fn dotted(&self, shown: &str) -> String {
        let dots = |is_end| if is_end { "" } else { "..." };
        format!("{}{shown}{}", dots(self.is_first), dots(self.is_last))
    }

    /// What is not UTF-8 is replaced.
    pub(super) fn lossy(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.bytes)
    }

    fn quoted(&self) -> String {
        self.dotted(&format!("{:?}", self.lossy()))
    }
}

/// Two texts that differ, as `expected "12", got "13"`.
fn expected_got(expected: &[u8], actual: &[u8]) -> String {
    let (expected, actual) = around_difference(expected, actual);
    if expected.lossy() == actual.lossy() {
        let raw = |excerpt: &Excerpt<'_>| excerpt.dotted(&format!("\"{}\"", excerpt.bytes.escape_ascii()));
        return format!("expected {}, got {}", raw(&expected), raw(&actual));
    }
    format!("expected {}, got {}", expected.quoted(), actual.quoted())
}

fn quoted(text: &[u8]) -> String {
    Excerpt::new(text, 0).quoted()
}

fn in_order<'a>(
    unit: &str,
    mut actual: impl Iterator<Item = &'a [u8]>,
    expected: impl Iterator<Item = &'a [u8]>,
    is_same: impl Fn(&[u8], &[u8]) -> bool,
) -> Result<(), String> {
    let mut number = 0_usize;
    for wanted in expected {
        match actual.next() {
            Some(got) if is_same(got, wanted) => number += 1,
            Some(got) => return Err(format!("{unit} {}: {}", number + 1, expected_got(wanted, got))),
            None if number == 0 => return Err(format!("no output, expected {}", quoted(wanted))),
            None => {
                return Err(format!("output ends after {unit} {number}, expected {}", quoted(wanted)));
            }
        }
    }
    match actual.next() {
        None => Ok(()),
        Some(got) => Err(format!("{unit} {}: expected no more, got {}", number + 1, quoted(got))),
    }
}

fn in_any_order<'a>(
    actual: impl Iterator<Item = &'a [u8]>,
    expected: impl Iterator<Item = &'a [u8]> + Clone,
) -> Result<(), String> {
    // Only what is expected is kept, so the memory does not depend on the candidate.
    let mut missing: HashMap<&[u8], usize> = HashMap::new();
    for line in expected.clone() {
        *missing.entry(line).or_default() += 1;
    }
    for (index, line) in actual.enumerate() {
        match missing.get_mut(line) {
            Some(0) => {
                return Err(format!("line {}: {} more often than expected", index + 1, quoted(line)));
            }
            Some(times) => *times -= 1,
            None => return Err(format!("line {}: {} is not expected", index + 1, quoted(line))),
        }
    }
    match expected.into_iter().find(|line| missing.get(line).is_some_and(|&times| times > 0)) {
        None => Ok(()),
        Some(line) => Err(format!("line {} is missing", quoted(line))),
    }
}

/// What separates words in Python's bytes.
fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0B | 0x0C)
}

fn trim_end(text: &[u8]) -> &[u8] {
    let kept = text.iter().rposition(|byte| !is_blank(byte)).map_or(0, |last| last + 1);
    text.get(..kept).unwrap_or_default()
}

fn whole_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|&byte| byte == b'\n')
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    let text = trim_end(text);
    let is_empty = text.is_empty(); // an empty text still splits into one empty line
    text.split(|&byte| byte == b'\n').map(trim_end).skip(usize::from(is_empty))
}

fn tokens(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(is_blank).filter(|token| !token.is_empty())
}

fn is_same_number(actual: &[u8], expected: &[u8], tolerance: f64) -> bool {
    match (number(actual), number(expected)) {
        (Some(a), Some(b)) => {
            is_close(a, b, tolerance)
                && (is_coarse(tolerance) || a != b || is_same_whole(actual, expected).unwrap_or(true))
        }
        (None, None) => match (special(actual), special(expected)) {
            (Some(a), Some(b)) => a == b,
            _ => false,
        },
        _ => false,
    }
}

/// A finite decimal number.
fn number(token: &[u8]) -> Option<f64> {
    let is_part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
    if !token.iter().all(is_part) {
        return None; // inf, nan, infinity
    }
    str::from_utf8(token).ok()?.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Whether two whole numbers are the same, however large; `None` when one of them is not whole.
fn is_same_whole(actual: &[u8], expected: &[u8]) -> Option<bool> {
    let ((a_is_negative, a), (b_is_negative, b)) = (whole(actual)?, whole(expected)?);
    Some(a == b && (a_is_negative == b_is_negative || a.is_empty()))
}

/// The sign of a whole number and its digits without leading zeros.
fn whole(token: &[u8]) -> Option<(bool, &[u8])> {
    let digits = token.strip_prefix(b"-").or(token.strip_prefix(b"+")).unwrap_or(token);
    let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
    let is_whole = digits.iter().all(u8::is_ascii_digit);
    is_whole.then_some((token.starts_with(b"-"), digits.get(zeros..)?))
}

/// NaN or an infinity with its sign.
fn special(token: &[u8]) -> Option<&'static str> {
    match &*token.to_ascii_lowercase() {
        b"nan" => Some("nan"),
        b"inf" | b"+inf" => Some("inf"),
        b"-inf" => Some("-inf"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::any;
    use proptest::{prop_assert, prop_assert_eq, proptest};

    use super::*;

    const WAYS: [Comparison; 5] = [
        Comparison::Exact,
        Comparison::Trimmed,
        Comparison::Tokens,
        Comparison::Floats { tolerance: 1e-6 },
        Comparison::Unordered,
    ];

    fn said(actual: &str, expected: &str, how: Comparison) -> String {
        compare(actual.as_bytes(), expected.as_bytes(), &how).err().unwrap_or_default()
    }

    fn is_same(actual: &str, expected: &str, how: Comparison) -> bool {
        said(actual, expected, how).is_empty()
    }

    fn floats(actual: &str, expected: &str) -> bool {
        is_same(actual, expected, Comparison::Floats { tolerance: 1e-6 })
    }

    #[test]
    fn exact_is_byte_for_byte() {
        assert!(is_same("a \n\n", "a \n\n", Comparison::Exact));
        for other in ["a\n\n", "a \n", "a \r\n\n", "a \n\n\n", "", "A \n\n"] {
            assert!(!is_same(other, "a \n\n", Comparison::Exact), "{other:?}");
        }
        assert_eq!(said("a\nb", "a\nb\n", Comparison::Exact), r#"line 2: expected "b\n", got "b""#);
        assert_eq!(said("a\r\n", "a\n", Comparison::Exact), r#"line 1: expected "a\n", got "a\r\n""#);
    }

    #[test]
    fn trimmed_ignores_blanks_at_the_ends_of_lines_and_empty_lines_at_the_end() {
        for same in ["a  b\n c", "a  b \t\r\n c\x0b\x0c\r\n \r\n\n", "a  b\n c\n"] {
            assert!(is_same(same, "a  b\n c\n", Comparison::Trimmed), "{same:?}");
        }
        for other in ["a b\n c", "a  b\nc", "\na  b\n c", "a  b\n\n c", "a  b", "a  b\n c\nd", "a  b\rc"] {
            assert!(!is_same(other, "a  b\n c\n", Comparison::Trimmed), "{other:?}");
        }
    }

    #[test]
    fn tokens_ignores_where_lines_end_and_how_much_is_between() {
        assert!(is_same("\r\n1 2\x0b\x0c3\t", "1\n2\n3\n", Comparison::Tokens));
        assert!(!is_same("12 3", "1 2 3", Comparison::Tokens));
        assert!(!is_same("1\u{a0}2", "1 2", Comparison::Tokens)); // as Python's bytes.split()
        assert!(!is_same("YES", "Yes", Comparison::Tokens));
        assert!(!is_same("1.0", "1", Comparison::Tokens));
    }

    #[test]
    fn no_output_is_what_an_empty_expectation_wants() {
        for how in [WAYS[1], WAYS[2], WAYS[3], WAYS[4]] {
            assert!(is_same("", "", how) && is_same(" \r\n\n", "", how) && is_same("", "\n", how));
            assert!(!is_same("0", "", how) && !is_same("", "0", how));
        }
        assert!(!is_same("\n", "", Comparison::Exact));
    }

    #[test]
    fn numbers_are_the_same_within_a_relative_or_absolute_tolerance() {
        for (actual, expected) in [
            ("1.0000009", "1"),
            ("-0.0", "0"),
            ("1e-7", "0"),
            ("1000000.9", "1e6"),
            (".5", "0.5"),
            ("5.", "5"),
            ("+3", "3"),
            ("area: 2.0000001", "area: 2"),
        ] {
            assert!(floats(actual, expected), "{actual} {expected}");
        }
        for (actual, expected) in
            [("1.000002", "1"), ("1000002", "1e6"), ("1.0 2", "1.0"), ("Area: 2", "area: 2"), ("1", "-1")]
        {
            assert!(!floats(actual, expected), "{actual} {expected}");
        }
    }

    #[test]
    fn nan_is_never_a_number_and_infinity_only_itself() {
        for number in ["0", "1.5", "1e308", "inf", "-inf"] {
            assert!(!floats("nan", number) && !floats(number, "nan"), "{number}");
            assert!(!is_same("nan", number, Comparison::Floats { tolerance: f64::MAX }));
        }
        assert!(floats("NaN", "nan") && floats("Inf", "inf") && floats("+INF", "inf"));
        assert!(floats("-inf", "-Inf") && !floats("-inf", "inf") && !floats("1e308", "inf"));
        assert!(!floats("infinity", "inf") && floats("infinity", "infinity"));
    }

    #[test]
    fn only_decimal_numbers_are_numbers() {
        for (actual, expected) in [("0x10", "16"), ("1_000", "1000"), ("1,5", "1.5"), ("1e400", "2e400")] {
            assert!(!floats(actual, expected) && floats(actual, actual), "{actual}");
        }
        assert!(!floats("e", "0") && !floats("-", "0") && !floats("\u{661}", "1"));
    }

    #[test]
    fn without_a_tolerance_whole_numbers_of_any_size_are_told_apart() {
        let same = |a: &str, b: &str| is_same(a, b, Comparison::Floats { tolerance: 0.0 });
        assert!(!same("9007199254740993", "9007199254740992"));
        assert!(same("+009007199254740993", "9007199254740993") && same("-0", "0") && same("1.50", "1.5"));
        assert!(same(&"7".repeat(999), &"7".repeat(999)) && !same(&"7".repeat(999), &"7".repeat(998)));
    }

    #[test]
    fn unordered_counts_lines() {
        assert!(is_same("b \na\r\nb\n\n", "a\nb\nb\n", Comparison::Unordered));
        assert_eq!(said("a\nb", "b\na\nb", Comparison::Unordered), r#"line "b" is missing"#);
        assert_eq!(
            said("b\na\na", "a\nb\nb", Comparison::Unordered),
            r#"line 3: "a" more often than expected"#
        );
        assert_eq!(said("a\nc", "a\nb", Comparison::Unordered), r#"line 2: "c" is not expected"#);
    }

    #[test]
    fn the_first_difference_is_named() {
        let trimmed = |actual, expected| said(actual, expected, Comparison::Trimmed);
        assert_eq!(trimmed("1\n2\n13\n5", "1\n2\n12\n4"), r#"line 3: expected "12", got "13""#);
        assert_eq!(trimmed("1\n2", "1\n2\n3"), r#"output ends after line 2, expected "3""#);
        assert_eq!(trimmed("1\n2", "1"), r#"line 2: expected no more, got "2""#);
        assert_eq!(trimmed("", "1"), r#"no output, expected "1""#);
        let tokens = said("1 2 3 4 x", "1 2 3 4 5", Comparison::Tokens);
        assert_eq!(tokens, r#"token 5: expected "5", got "x""#);
    }

    #[test]
    fn a_difference_far_into_a_line_is_in_sight() {
        let line = |middle: &str| format!("{}{middle}{}", "é".repeat(500), "z".repeat(500));
        let sentence = said(&line("B"), &line("A"), Comparison::Trimmed);
        let (before, after) = ("é".repeat(10), "z".repeat(39));
        let wanted = format!("...\"{before}A{after}\"..., got ...\"{before}B{after}\"...");
        assert_eq!(sentence, format!("line 1: expected {wanted}"));
    }

    #[test]
    fn bytes_that_are_not_text_are_shown_where_they_differ() {
        let error = compare(b"\xff", b"\xfe", &Comparison::Tokens).unwrap_err();
        assert_eq!(error, r#"token 1: expected "\xfe", got "\xff""#);
    }

    #[test]
    fn a_tolerance_is_a_finite_number_and_for_floats_only() {
        assert_eq!(Comparison::parse("floats", None).unwrap(), Comparison::Floats { tolerance: 1e-6 });
        assert_eq!(Comparison::parse("tokens", None).unwrap(), Comparison::Tokens);
        for tolerance in [f64::NAN, f64::INFINITY, -1.0] {
            assert!(Comparison::parse("floats", Some(tolerance)).is_err());
        }
        assert!(Comparison::parse("tokens", Some(0.1)).is_err());
        assert!(Comparison::parse("lines", None).unwrap_err().to_string().contains("unordered"));
    }

    #[test]
    fn large_outputs_take_time_in_proportion() {
        let text = b"a b\n".repeat(1 << 17);
        let mut other = text.clone();
        other.extend_from_slice(b"\r\n".repeat(1 << 15).as_slice());
        for how in &WAYS[1..] {
            assert_eq!(compare(&other, &text, how), Ok(()));
        }
    }

    proptest! {
        #[test]
        fn what_is_stricter_says_no_more_often(
            a in "[ab1.\\r\\n \u{e9}]{0,8}", b in "[ab1.\\r\\n \u{e9}]{0,8}",
        ) {
            let [exact, trimmed, tokens, floats, unordered] = WAYS.map(|how| is_same(&a, &b, how));
            prop_assert!(exact <= trimmed && trimmed <= tokens && tokens <= floats && trimmed <= unordered);
            let split = |text: &str| text.split_ascii_whitespace().map(str::to_owned).collect::<Vec<_>>();
            prop_assert_eq!(tokens, split(&a) == split(&b));
        }

        #[test]
        fn any_bytes_equal_themselves_and_every_sentence_is_short(
            a in any::<Vec<u8>>(), b in any::<Vec<u8>>(),
        ) {
            for how in WAYS {
                prop_assert_eq!(compare(&a, &a, &how), Ok(()));
                if let Err(sentence) = compare(&a, &b, &how) {
                    prop_assert!(!sentence.is_empty() && sentence.chars().count() <= SENTENCE_CHARS);
                }
            }
        }
    }
}
