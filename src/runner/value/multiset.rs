//! What has no order: sets, the keys of dicts, and sequences that may have any.
//!
//! Without a tolerance, values that agree share a fingerprint, and large collections take linear time. With
//! one, agreement is not transitive: which item belongs to which is found by sorting, else by matching.

use std::cmp::Ordering;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hash, Hasher};

use super::Value;
use super::agree::{Judge, Kind, Verdict};

/// Items that sorting does not match are matched up to this number.
const MAX_MATCHED: usize = 1000;

impl Judge<'_> {
    pub(super) fn in_any_order<'a>(&self, actual: &'a [Value], expected: &'a [Value]) -> Verdict<'a> {
        if self.how.tolerance.is_some_and(|tolerance| tolerance > 0.0) {
            return self.in_pairs(actual, expected);
        }
        let mut index = Index::of(self, actual.iter());
        for wanted in expected {
            if index.take(self, wanted).is_none() {
                return Err(Kind::Missing(wanted).into());
            }
        }
        match index.first_left().and_then(|left| actual.get(left)) {
            None => Ok(()),
            Some(left) => Err(Kind::Unexpected(left).into()),
        }
    }

    /// Whether the items can be matched in pairs that agree within the tolerance.
    ///
    /// Sorting both sides settles it for numbers and texts, as long as the tolerance is at most 1: then a
    /// larger number never accepts less at either end, so two pairs that cross can be exchanged. Everything
    /// else is settled by augmenting paths when sorting finds no matching.
    fn in_pairs<'a>(&self, actual: &'a [Value], expected: &'a [Value]) -> Verdict<'a> {
        let (mut a, mut b): (Vec<_>, Vec<_>) = (actual.iter().collect(), expected.iter().collect());
        a.sort_by(|x, y| order(x, y));
        b.sort_by(|x, y| order(x, y));
        let first = a.iter().zip(&b).find(|(a, b)| self.agree(a, b).is_err());
        let kind = match (first, a.len().cmp(&b.len())) {
            (None, Ordering::Equal) => return Ok(()),
            (None, Ordering::Less) => b.get(a.len()).map(|missing| Kind::Missing(missing)),
            (None, Ordering::Greater) => a.get(b.len()).map(|left| Kind::Unexpected(left)),
            (Some((a, b)), _) if order(a, b).is_lt() => Some(Kind::Unexpected(a)),
            (Some((_, b)), _) => Some(Kind::Missing(b)),
        };
        let is_sortable = |items: &[&Value]| items.iter().all(|item| is_sortable(item));
        let is_settled = self.how.tolerance.is_some_and(|tolerance| tolerance <= 1.0)
            && is_sortable(&a)
            && is_sortable(&b);
        if a.len() == b.len() && !is_settled {
            return match a.len() {
                few @ ..=MAX_MATCHED => self.augmented(&a, &b, few),
                many => Err(Kind::TooManyToMatch(many).into()),
            };
        }
        kind.map_or(Ok(()), |kind| Err(kind.into()))
    }

    /// The same by Kuhn's algorithm, with a breadth-first search for each path; `count` items on each side.
    fn augmented<'a>(&self, actual: &[&'a Value], expected: &[&'a Value], count: usize) -> Verdict<'a> {
        let accepts: Vec<Vec<usize>> = expected
            .iter()
            .map(|b| {
                (0..count).filter(|&at| actual.get(at).is_some_and(|a| self.agree(a, b).is_ok())).collect()
            })
            .collect();
        if self.steps.get() == 0 {
            return Err(Kind::TooMuchToMatch.into());
        }
        let mut owner: Vec<Option<usize>> = vec![None; count]; // of each actual item
        for (start, wanted) in expected.iter().enumerate() {
            let mut reached_from: Vec<Option<usize>> = vec![None; count];
            let mut queue = VecDeque::from([start]);
            let mut end = None;
            'search: while let Some(from) = queue.pop_front() {
                for &at in accepts.get(from).into_iter().flatten() {
                    let Some(reached @ None) = reached_from.get_mut(at) else { continue };
                    *reached = Some(from);
                    match owner.get(at).copied().flatten() {
                        Some(other) => queue.push_back(other),
                        None => {
                            end = Some(at);
                            break 'search;
                        }
                    }
                }
            }
            if end.is_none() {
                return Err(Kind::Missing(wanted).into());
            }
            // Along the path each item goes to the one that reached it, which gives up its own.
            while let Some(at) = end {
                let from = reached_from.get(at).copied().flatten();
                end = owner.iter().position(|&o| o.is_some() && o == from);
                if let Some(place) = owner.get_mut(at) {
                    *place = from;
                }
            }
        }
        Ok(())
    }

    /// A number that two values share when they agree without tolerance; `None` for what equals nothing.
    fn fingerprint(&self, value: &Value) -> Option<u64> {
        let mut hasher = self.seed.build_hasher();
        match value {
            Value::None => 0_u8.hash(&mut hasher),
            Value::Bool(b) => (1_u8, b).hash(&mut hasher),
            Value::Int(_) | Value::Float(_) => self.number_fingerprint(value, &mut hasher)?,
            Value::Str(text) => (4_u8, text).hash(&mut hasher),
            Value::Bytes(bytes) => (5_u8, bytes).hash(&mut hasher),
            Value::List(items) | Value::Tuple(items) => {
                let is_list = self.how.sequences_equal || matches!(value, Value::List(_));
                (if is_list { 6_u8 } else { 7 }, items.len()).hash(&mut hasher);
                for item in items {
                    self.fingerprint(item)?.hash(&mut hasher);
                }
            }
            Value::Set(items) | Value::FrozenSet(items) => {
                let sum = sum(items.iter().map(|item| self.fingerprint(item)))?;
                (8_u8, items.len(), sum).hash(&mut hasher);
            }
            Value::Dict(pairs) => {
                let sum = sum(pairs.iter().map(|(key, value)| {
                    Some(self.seed.hash_one((self.fingerprint(key)?, self.fingerprint(value)?)))
                }))?;
                (9_u8, pairs.len(), sum).hash(&mut hasher);
            }
            Value::Complex(re, im) => {
                10_u8.hash(&mut hasher);
                for part in [re, im] {
                    self.number_fingerprint(&Value::Float(*part), &mut hasher)?;
                }
            }
            Value::Other { .. } => return None,
        }
        Some(hasher.finish())
    }

    fn number_fingerprint(&self, value: &Value, hasher: &mut impl Hasher) -> Option<()> {
        match value {
            Value::Float(number) if number.is_nan() && !self.how.nan_equal => return None,
            Value::Float(number) if number.is_nan() => "nan".hash(hasher),
            Value::Float(number) if self.how.tolerance.is_none() || number.fract() != 0.0 => {
                (3_u8, (number + 0.0).to_bits()).hash(hasher); // -0.0 becomes 0.0
            }
            _ => (2_u8, exact_digits(value)).hash(hasher),
        }
        Some(())
    }
}

/// A sum that does not depend on the order; `None` when a part is missing.
fn sum(mut prints: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    prints.try_fold(0_u64, |sum, print| Some(sum.wrapping_add(print?)))
}

/// Values by fingerprint, each of which is taken once.
pub(super) struct Index<'a> {
    values: Vec<Option<&'a Value>>,
    places: HashMap<u64, VecDeque<usize>>,
}

impl<'a> Index<'a> {
    pub(super) fn of(judge: &Judge<'_>, values: impl Iterator<Item = &'a Value>) -> Self {
        let values: Vec<_> = values.map(Some).collect();
        let mut places: HashMap<u64, VecDeque<usize>> = HashMap::with_capacity(values.len());
        for (index, value) in values.iter().enumerate() {
            if let Some(print) = value.and_then(|value| judge.fingerprint(value)) {
                places.entry(print).or_default().push_back(index);
            }
        }
        Self { values, places }
    }

    /// Takes a value that agrees with `wanted`; where it was.
    pub(super) fn take(&mut self, judge: &Judge<'_>, wanted: &'a Value) -> Option<usize> {
        let places = self.places.get_mut(&judge.fingerprint(wanted)?)?;
        let is_wanted = |place: &usize| {
            let found = self.values.get(*place).copied().flatten();
            found.is_some_and(|found| judge.agree(found, wanted).is_ok())
        };
        let at = places.iter().position(is_wanted)?;
        let place = places.remove(at)?;
        self.values.get_mut(place)?.take().map(|_| place)
    }

    /// Where the first value is that nobody took.
    pub(super) fn first_left(&self) -> Option<usize> {
        self.values.iter().position(Option::is_some)
    }
}

pub(super) fn as_double(value: &Value) -> Option<f64> {
    match value {
        Value::Int(digits) => digits.parse().ok(),
        Value::Float(number) => Some(*number),
        _ => None,
    }
}

/// The digits of an int, or of a float as if it were one.
pub(super) fn exact_digits(value: &Value) -> String {
    match value {
        Value::Float(number) => format!("{:.0}", number + 0.0), // -0.0 becomes 0.0
        other => other.to_string(),
    }
}

/// Whether sorting settles which values of this kind match.
fn is_sortable(value: &Value) -> bool {
    matches!(
        value,
        Value::None | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) | Value::Bytes(_)
    )
}

/// An order that has numbers by their size, and near values near each other elsewhere.
fn order(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Str(a), Value::Str(b)) => a.cmp(b),
        (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
        (Value::Int(_) | Value::Float(_), Value::Int(_) | Value::Float(_)) => {
            let double = |value| as_double(value).map_or(f64::NAN, |number| number + 0.0);
            let (x, y) = (double(a), double(b));
            // Ints that are the same double come one after the other, too.
            let by_size = x.partial_cmp(&y).unwrap_or_else(|| x.is_nan().cmp(&y.is_nan()));
            by_size.then_with(|| digits(a).cmp(&digits(b)))
        }
        (Value::Complex(a_re, a_im), Value::Complex(b_re, b_im)) => {
            a_re.total_cmp(b_re).then(a_im.total_cmp(b_im))
        }
        (Value::List(a) | Value::Tuple(a), Value::List(b) | Value::Tuple(b)) => {
            let unequal = a.iter().zip(b).map(|(a, b)| order(a, b)).find(|order| order.is_ne());
            unequal.unwrap_or(a.len().cmp(&b.len()))
        }
        _ => rank(a).cmp(&rank(b)),
    }
}

fn digits(value: &Value) -> Option<(usize, &str)> {
    match value {
        Value::Int(digits) => Some((digits.len(), digits)),
        _ => None,
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::None => 0,
        Value::Bool(_) => 1,
        Value::Int(_) | Value::Float(_) => 2,
        Value::Str(_) => 3,
        Value::Bytes(_) => 4,
        Value::Complex(..) => 5,
        Value::List(_) | Value::Tuple(_) => 6,
        Value::Set(_) | Value::FrozenSet(_) => 7,
        Value::Dict(_) => 8,
        Value::Other { .. } => 9,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Just, Strategy, any};
    use proptest::{prop_assert, prop_assert_eq, prop_oneof, proptest};

    use super::*;
    use crate::runner::value::json::tests::plain;
    use crate::runner::value::{Agreement, agree};

    fn unordered(tolerance: f64) -> Agreement {
        Agreement { tolerance: Some(tolerance), unordered: true, ..Agreement::default() }
    }

    /// The same by trying every way to match; only the outermost sequence may have any order.
    fn has_matching(actual: &[Value], expected: &[Value], how: &Agreement) -> bool {
        let Some((wanted, others)) = expected.split_first() else { return actual.is_empty() };
        (0..actual.len()).any(|at| {
            let mut left = actual.to_vec();
            let one = left.remove(at);
            let inside = Agreement { unordered: false, ..*how };
            agree(&one, wanted, &inside).is_ok() && has_matching(&left, others, how)
        })
    }

    /// Numbers on a grid, so that many are just within the tolerance and many just outside.
    fn number() -> impl Strategy<Value = Value> {
        prop_oneof![
            (-12_i32..12).prop_map(|n| Value::Float(f64::from(n) * 0.25)),
            (-3_i32..3).prop_map(|n| Value::Int(n.to_string())),
            Just(Value::Float(f64::NAN)),
            Just(Value::Float(f64::INFINITY)),
        ]
    }

    fn item() -> impl Strategy<Value = Value> {
        let text = prop_oneof![Just("a"), Just("b")].prop_map(|text| Value::Str(text.to_owned()));
        prop_oneof![4 => number(), 1 => text, 1 => Just(Value::None), 1 => any::<bool>().prop_map(Value::Bool)]
    }

    fn point() -> impl Strategy<Value = Value> {
        (number(), number()).prop_map(|(x, y)| Value::Tuple(vec![x, y]))
    }

    proptest! {
        #[test]
        fn matching_by_sorting_misses_nothing(
            a in proptest::collection::vec(item(), 0..6), b in proptest::collection::vec(item(), 0..6),
            tolerance in prop_oneof![Just(0.0), Just(0.25), Just(0.5), Just(1.0), Just(2.0)],
        ) {
            let how = unordered(tolerance);
            let found = agree(&Value::List(a.clone()), &Value::List(b.clone()), &how).is_ok();
            prop_assert_eq!(found, has_matching(&a, &b, &how));
            let found = agree(&Value::Set(a.clone()), &Value::Set(b.clone()), &how).is_ok();
            prop_assert_eq!(found, has_matching(&a, &b, &how));
        }

        #[test]
        fn matching_by_paths_misses_nothing(
            a in proptest::collection::vec(point(), 4), b in proptest::collection::vec(point(), 4),
            near in proptest::collection::vec((-1_i32..2, -1_i32..2), 4), turn in 0_usize..4,
        ) {
            let how = unordered(0.5);
            let (a_list, b_list) = (Value::List(a.clone()), Value::List(b.clone()));
            prop_assert_eq!(agree(&a_list, &b_list, &how).is_ok(), has_matching(&a, &b, &how));
            // Random points hardly ever match: move some a little and turn them round.
            let moved = |(value, by): (&Value, i32)| match value {
                Value::Float(x) => Value::Float(x + f64::from(by) * 0.5),
                other => other.clone(),
            };
            let mut close: Vec<_> = a.iter().zip(&near).map(|(point, &(x, y))| match point {
                Value::Tuple(xy) => Value::Tuple(vec![moved((&xy[0], x)), moved((&xy[1], y))]),
                other => other.clone(),
            }).collect();
            close.rotate_left(turn);
            prop_assert_eq!(agree(&Value::List(close.clone()), &a_list, &how), Ok(()));
            prop_assert!(has_matching(&close, &a, &how));
        }

        #[test]
        fn every_value_agrees_with_itself(value in plain()) {
            for tolerance in [None, Some(0.0), Some(1e-9), Some(3.0)] {
                for unordered in [false, true] {
                    let how = Agreement { tolerance, unordered, ..Agreement::default() };
                    prop_assert_eq!(agree(&value, &value, &how), Ok(()));
                }
            }
        }

        #[test]
        fn a_wider_rule_accepts_what_a_stricter_one_does(a in plain(), b in plain()) {
            let exact = Agreement::default();
            for (a, b) in [(&a, &b), (&b, &a)] {
                if agree(a, b, &exact).is_ok() {
                    let sequences = Agreement { sequences_equal: true, ..exact };
                    for wider in [sequences, unordered(0.0), unordered(1e-9)] {
                        prop_assert_eq!(agree(a, b, &wider), Ok(()));
                    }
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_matched_in_bounded_time_is_said() {
        let points = |count: i32, by: f64| {
            let point = |n: i32| {
                let (x, y) = (f64::from(n % 2) * by, f64::from(n));
                Value::Tuple(vec![Value::Float(x), Value::Float(y)])
            };
            Value::List((0..count).map(point).collect())
        };
        assert_eq!(agree(&points(1000, 0.01), &points(1000, 0.02), &unordered(0.1)), Ok(()));
        // Sorted by x, the points of one side are in the order of y and those of the other are not.
        assert_eq!(agree(&points(1000, 0.0), &points(1000, 0.05), &unordered(0.1)), Ok(()));
        assert_eq!(
            agree(&points(1002, 0.0), &points(1002, 0.05), &unordered(0.1)),
            Err("1002 items are too many to match with a tolerance".to_owned())
        );
    }
}
