//! Plain data that a candidate's function returns: read from its process, shown, and compared outside it.
//!
//! Only these kinds cross; an object of any other kind arrives as `Other`, which equals nothing. `json` is
//! the text that carries a value, `agree` says whether it is the one a test expects.

mod agree;
mod json;
mod multiset;
mod plain;
mod repr;

pub use agree::{Agreement, agree};
pub use json::{Error, Problem};

/// The longest text of a value.
pub const MAX_BYTES: usize = 64 << 20;
/// So many containers lie inside each other at most.
pub const MAX_DEPTH: usize = 200;
/// So many values are in a value at most, keys and containers among them.
pub const MAX_ITEMS: usize = 5_000_000;
/// The most digits of an int.
pub const MAX_DIGITS: usize = 100_000;

/// Plain data as Python has it.
///
/// `==` is the equality of Rust: the order of sets and dicts counts. `agree` compares as a test does.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `None`.
    None,
    /// A bool, which is no int here.
    Bool(bool),
    /// An int in decimal, without leading zeros.
    Int(String),
    /// A float.
    Float(f64),
    /// A str. One with a lone surrogate is `Other`, since no text of ours can hold it.
    Str(String),
    /// Bytes or a bytearray.
    Bytes(Vec<u8>),
    /// A list.
    List(Vec<Value>),
    /// A tuple.
    Tuple(Vec<Value>),
    /// A set.
    Set(Vec<Value>),
    /// A frozenset.
    FrozenSet(Vec<Value>),
    /// A dict.
    Dict(Vec<(Value, Value)>),
    /// A complex number: real and imaginary part.
    Complex(f64, f64),
    /// What is no plain data.
    Other {
        /// Its type, or what else is wrong with it.
        type_name: String,
    },
}

impl Value {
    /// What Python calls it.
    pub fn type_name(&self) -> &str {
        match self {
            Self::None => "NoneType",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Float(_) => "float",
            Self::Str(_) => "str",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "list",
            Self::Tuple(_) => "tuple",
            Self::Set(_) => "set",
            Self::FrozenSet(_) => "frozenset",
            Self::Dict(_) => "dict",
            Self::Complex(..) => "complex",
            Self::Other { type_name } => type_name,
        }
    }

    /// Whether Python could keep it in a set or as a key.
    pub fn is_hashable(&self) -> bool {
        match self {
            Self::List(_) | Self::Set(_) | Self::Dict(_) => false,
            Self::Tuple(items) => items.iter().all(Self::is_hashable),
            _ => true, // what is in a frozenset has been asked already
        }
    }
}

/// Where in a value something is, `[2]["a"]`; put together from the inside out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place(Vec<String>);

impl Place {
    /// The same place, seen from the sequence that has it at `index`.
    pub(crate) fn in_sequence(&mut self, index: usize) {
        self.0.push(format!("[{index}]"));
    }

    /// The same place, seen from the dict that has it under `key`.
    pub(crate) fn in_dict(&mut self, key: &Value) {
        self.0.push(match key {
            Value::Str(text) if text.len() <= repr::SHORT => format!("[{text:?}]"),
            key => format!("[{}]", key.short(repr::SHORT)),
        });
    }

    /// `at [2]["a"]: `, of a long one the inner end; nothing for the value itself.
    pub(crate) fn prefix(&self) -> String {
        const CHARS: usize = 100;
        let (mut kept, mut chars) = (0, 0);
        for step in &self.0 {
            chars += step.chars().count();
            if kept > 0 && chars > CHARS {
                break;
            }
            kept += 1;
        }
        let steps: String = self.0.iter().take(kept).rev().map(String::as_str).collect();
        let dots = if kept < self.0.len() { "..." } else { "" };
        if steps.is_empty() { String::new() } else { format!("at {dots}{steps}: ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_from_the_outside_and_cut_there() {
        let mut place = Place::default();
        assert_eq!(place.prefix(), "");
        place.in_dict(&Value::Str("a".to_owned()));
        place.in_sequence(2);
        assert_eq!(place.prefix(), r#"at [2]["a"]: "#);
        (0..100).for_each(|index| place.in_sequence(index));
        assert!(place.prefix().starts_with("at ...[") && place.prefix().ends_with(r#"[0][2]["a"]: "#));
    }
}
