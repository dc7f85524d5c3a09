//! A value as one line of JSON.
//!
//! null, booleans, strings, arrays (lists), and numbers stand for themselves; a float has a point or an
//! exponent, an int has neither. Everything else is an object with one key:
//!
//! | key | value | stands for |
//! | --- | --- | --- |
//! | `i` | `"123"` | an int with more than 600 digits, which not every JSON reader takes as a number |
//! | `f` | `"nan"`, `"inf"`, `"-inf"` | a float that is no JSON number |
//! | `c` | `[1.0, 2.0]` | a complex number |
//! | `b` | `"00ff"` | bytes |
//! | `t`, `s`, `fs` | `[...]` | a tuple, set, frozenset |
//! | `d` | `[[key, value], ...]` | a dict |
//! | `o` | `"generator"` | anything else, by the name of its type |

use std::collections::HashMap;
use std::fmt::Write;

use super::{MAX_BYTES, MAX_DEPTH, MAX_DIGITS, MAX_ITEMS, Value};

/// Every Python reads and writes ints of so many digits, whatever limit is set there.
const PLAIN_DIGITS: usize = 600;

/// Why a text is no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("value, byte {at}: {problem}")]
pub struct Error {
    /// Where, counted in bytes from 0.
    pub at: usize,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It is longer than [`MAX_BYTES`].
    #[error("longer than {MAX_BYTES} bytes")]
    TooLong,
    /// Containers inside each other beyond [`MAX_DEPTH`].
    #[error("nested deeper than {MAX_DEPTH}")]
    TooDeep,
    /// More values than [`MAX_ITEMS`].
    #[error("more than {MAX_ITEMS} items")]
    TooMany,
    /// It is not UTF-8.
    #[error("not UTF-8")]
    NotUtf8,
    /// Something else belongs there.
    #[error("expected {0}")]
    Expected(&'static str),
}

impl Value {
    /// The value that a text stands for; bounded in length, depth and number, whatever the bytes are.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        if bytes.len() > MAX_BYTES {
            return Err(Error { at: MAX_BYTES, problem: Problem::TooLong });
        }
        Self::read(bytes, false)
    }

    /// The value of JSON that others wrote, as Python's `json` reads it: objects are dicts, `NaN` and
    /// `Infinity` are floats, and so are numbers beyond the range of a double. A str with a lone surrogate
    /// is `Other`. Bounded in depth and number.
    pub fn parse_plain(bytes: &[u8]) -> Result<Self, Error> {
        Self::read(bytes, true)
    }

    fn read(bytes: &[u8], plain: bool) -> Result<Self, Error> {
        let text = str::from_utf8(bytes)
            .map_err(|error| Error { at: error.valid_up_to(), problem: Problem::NotUtf8 })?;
        let mut reader = Reader { text, at: 0, depth: 0, items: 0, plain };
        let value = reader.value()?;
        match reader.peek() {
            None => Ok(value),
            Some(_) => Err(reader.expected("the end")),
        }
    }

    /// The text that stands for this value, without a line end.
    pub fn to_json(&self) -> String {
        let mut text = String::new();
        self.write_json(&mut text);
        text
    }

    fn write_json(&self, out: &mut String) {
        match self {
            Self::None => out.push_str("null"),
            Self::Bool(true) => out.push_str("true"),
            Self::Bool(false) => out.push_str("false"),
            Self::Int(digits) if digits.len() <= PLAIN_DIGITS => out.push_str(digits),
            Self::Int(digits) => write_tagged(out, "i", |out| write_string(out, digits)),
            Self::Float(number) => write_float(out, *number),
            Self::Str(text) => write_string(out, text),
            Self::Bytes(bytes) => write_tagged(out, "b", |out| {
                out.push('"');
                for byte in bytes {
                    let _ = write!(out, "{byte:02x}"); // a String takes everything
                }
                out.push('"');
            }),
            Self::List(items) => write_array(out, items, Self::write_json),
            Self::Tuple(items) => write_tagged(out, "t", |out| write_array(out, items, Self::write_json)),
            Self::Set(items) => write_tagged(out, "s", |out| write_array(out, items, Self::write_json)),
            Self::FrozenSet(items) => {
                write_tagged(out, "fs", |out| write_array(out, items, Self::write_json));
            }
            Self::Dict(pairs) => write_tagged(out, "d", |out| {
                write_array(out, pairs, |(key, value), out| {
                    write_array(out, &[key, value], |item, out| item.write_json(out));
                });
            }),
            Self::Complex(re, im) => write_tagged(out, "c", |out| {
                write_array(out, &[re, im], |part, out| write_float(out, **part));
            }),
            Self::Other { type_name } => write_tagged(out, "o", |out| write_string(out, type_name)),
        }
    }
}

/// A finite float as Python writes it: the shortest text that reads back as the same number.
pub(super) fn float_text(number: f64) -> String {
    let text = format!("{number:?}");
    match text.split_once('e') {
        None => text,
        Some((mantissa, exponent)) => {
            let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
            format!("{mantissa}e{sign}{digits:0>2}")
        }
    }
}

fn write_float(out: &mut String, number: f64) {
    let special = match number {
        _ if number.is_finite() => return out.push_str(&float_text(number)),
        _ if number.is_nan() => "nan",
        _ if number > 0.0 => "inf",
        _ => "-inf",
    };
    write_tagged(out, "f", |out| write_string(out, special));
}

fn write_tagged(out: &mut String, tag: &str, write: impl FnOnce(&mut String)) {
    let _ = write!(out, "{{\"{tag}\":");
    write(out);
    out.push('}');
}

fn write_array<T>(out: &mut String, items: &[T], write: impl Fn(&T, &mut String)) {
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(item, out);
    }
    out.push(']');
}

pub(super) fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// The pairs as Python's `json` keeps them: of equal keys the place of the first and the value of the last.
fn last_of_each(pairs: Vec<(Value, Value)>) -> Vec<(Value, Value)> {
    let name = |key: &Value| match key {
        Value::Str(name) => name.clone(),
        _ => String::new(), // there are no others
    };
    let mut places: HashMap<String, usize> = HashMap::with_capacity(pairs.len());
    let mut kept: Vec<(Value, Value)> = Vec::with_capacity(pairs.len());
    for (key, value) in pairs {
        let place = *places.entry(name(&key)).or_insert(kept.len());
        match kept.get_mut(place) {
            Some(pair) => pair.1 = value,
            None => kept.push((key, value)),
        }
    }
    kept
}

/// An int that is not too long.
fn int(text: &str) -> Value {
    match text.len() - usize::from(text.starts_with('-')) {
        ..=MAX_DIGITS => Value::Int(if text == "-0" { "0" } else { text }.to_owned()),
        _ => Value::Other { type_name: format!("int of more than {MAX_DIGITS} digits") },
    }
}

/// Reads a text from the front.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    items: usize,
    plain: bool,
}

impl<'a> Reader<'a> {
    fn fail<T>(&self, problem: Problem) -> Result<T, Error> {
        Err(Error { at: self.at, problem })
    }

    fn expected(&self, what: &'static str) -> Error {
        Error { at: self.at, problem: Problem::Expected(what) }
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The next byte that is not blank.
    fn peek(&mut self) -> Option<u8> {
        while matches!(self.byte(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
        self.byte()
    }

    fn take(&mut self, byte: u8, what: &'static str) -> Result<(), Error> {
        match self.peek() {
            Some(found) if found == byte => {
                self.at += 1;
                Ok(())
            }
            _ => Err(self.expected(what)),
        }
    }

    fn value(&mut self) -> Result<Value, Error> {
        self.items += 1;
        if self.items > MAX_ITEMS {
            return self.fail(Problem::TooMany);
        }
        match self.peek() {
            Some(b'n') => self.word("null", Value::None),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'"') => Ok(match self.string()? {
                (text, true) => Value::Str(text),
                (_, false) => Value::Other { type_name: "str with a lone surrogate".to_owned() },
            }),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'[') => self.deeper(|reader| Ok(Value::List(reader.array(Self::value)?))),
            Some(b'{') if self.plain => self.deeper(Self::object),
            Some(b'{') => self.deeper(Self::tagged),
            Some(b'N') if self.plain => self.word("NaN", Value::Float(f64::NAN)),
            Some(b'I') if self.plain => self.word("Infinity", Value::Float(f64::INFINITY)),
            _ => Err(self.expected("a value")),
        }
    }

    fn word(&mut self, word: &'static str, value: Value) -> Result<Value, Error> {
        match self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            true => {
                self.at += word.len();
                Ok(value)
            }
            false => Err(self.expected("a value")),
        }
    }

    fn deeper(&mut self, read: impl FnOnce(&mut Self) -> Result<Value, Error>) -> Result<Value, Error> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.fail(Problem::TooDeep);
        }
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    /// An object of any keys.
    fn object(&mut self) -> Result<Value, Error> {
        self.take(b'{', "an object")?;
        let mut pairs = Vec::new();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Dict(pairs));
        }
        loop {
            self.items += 1;
            let key = self.key()?;
            pairs.push((Value::Str(key), self.value()?));
            match self.peek() {
                Some(b',') => self.at += 1,
                _ => break,
            }
        }
        self.take(b'}', "a comma or the end of the object")?;
        Ok(Value::Dict(last_of_each(pairs)))
    }

    fn tagged(&mut self) -> Result<Value, Error> {
        self.take(b'{', "an object")?;
        let start = self.at;
        let value = match &*self.key()? {
            "i" => self.long_int()?,
            "f" => Value::Float(self.special()?),
            "c" => self.complex()?,
            "b" => Value::Bytes(self.hex()?),
            "t" => Value::Tuple(self.array(Self::value)?),
            "s" => Value::Set(self.array(Self::hashable)?),
            "fs" => Value::FrozenSet(self.array(Self::hashable)?),
            "d" => Value::Dict(self.array(Self::pair)?),
            "o" => Value::Other { type_name: self.string()?.0 },
            _ => return Err(Error { at: start, problem: Problem::Expected("a key of ours") }),
        };
        self.take(b'}', "one key only")?;
        Ok(value)
    }

    fn key(&mut self) -> Result<String, Error> {
        let (key, _) = self.string()?;
        self.take(b':', "a colon")?;
        Ok(key)
    }

    fn array<T>(&mut self, item: impl Fn(&mut Self) -> Result<T, Error>) -> Result<Vec<T>, Error> {
        self.take(b'[', "an array")?;
        let mut items = Vec::new();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            match self.peek() {
                Some(b',') => self.at += 1,
                _ => break,
            }
        }
        self.take(b']', "a comma or the end of the array")?;
        Ok(items)
    }

    /// An item of a set or a key; what could be neither in Python is `Other`.
    fn hashable(&mut self) -> Result<Value, Error> {
        Ok(match self.value()? {
            value if value.is_hashable() => value,
            value => Value::Other { type_name: format!("hashable {}", value.type_name()) },
        })
    }

    fn pair(&mut self) -> Result<(Value, Value), Error> {
        self.take(b'[', "a key and a value")?;
        let key = self.hashable()?;
        self.take(b',', "a comma")?;
        let value = self.value()?;
        self.take(b']', "the end of the pair")?;
        Ok((key, value))
    }

    /// Moves on over digits; how many there were.
    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.byte().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    /// Moves on over a byte of a kind, if it comes next.
    fn skip(&mut self, is_kind: impl Fn(u8) -> bool) -> bool {
        let is_next = self.byte().is_some_and(is_kind);
        self.at += usize::from(is_next);
        is_next
    }

    /// Moves on over the whole part of a number.
    fn whole_part(&mut self) -> Result<(), Error> {
        self.skip(|byte| byte == b'-');
        let is_zero = self.byte() == Some(b'0');
        match self.digits() {
            0 => Err(self.expected("a digit")),
            2.. if is_zero => Err(self.expected("no leading zero")),
            _ => Ok(()),
        }
    }

    fn number(&mut self) -> Result<Value, Error> {
        let start = self.at;
        if self.plain && self.text.get(start..).is_some_and(|rest| rest.starts_with("-Infinity")) {
            return self.word("-Infinity", Value::Float(f64::NEG_INFINITY));
        }
        self.whole_part()?;
        let whole_end = self.at;
        if self.skip(|byte| byte == b'.') && self.digits() == 0 {
            return Err(self.expected("a digit"));
        }
        if self.skip(|byte| matches!(byte, b'e' | b'E')) {
            self.skip(|byte| matches!(byte, b'+' | b'-'));
            if self.digits() == 0 {
                return Err(self.expected("a digit"));
            }
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        if self.at == whole_end {
            return Ok(int(text));
        }
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() || self.plain => Ok(Value::Float(number)),
            _ => Err(Error { at: start, problem: Problem::Expected("a finite number") }),
        }
    }

    /// An int as a string.
    fn long_int(&mut self) -> Result<Value, Error> {
        self.take(b'"', "a string of digits")?;
        let start = self.at;
        self.whole_part()?;
        let value = int(self.text.get(start..self.at).unwrap_or_default());
        match self.skip(|byte| byte == b'"') {
            true => Ok(value),
            false => Err(self.expected("the end of the digits")),
        }
    }

    fn special(&mut self) -> Result<f64, Error> {
        let start = self.at;
        match &*self.string()?.0 {
            "nan" => Ok(f64::NAN),
            "inf" => Ok(f64::INFINITY),
            "-inf" => Ok(f64::NEG_INFINITY),
            _ => Err(Error { at: start, problem: Problem::Expected("nan, inf or -inf") }),
        }
    }

    fn complex(&mut self) -> Result<Value, Error> {
        let start = self.at;
        let items = self.items;
        let parts = self.array(Self::value)?;
        self.items = items; // its parts are no items of their own
        match *parts {
            [Value::Float(re), Value::Float(im)] => Ok(Value::Complex(re, im)),
            _ => Err(Error { at: start, problem: Problem::Expected("two floats") }),
        }
    }

    fn hex(&mut self) -> Result<Vec<u8>, Error> {
        let start = self.at;
        let digits = self.string()?.0;
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let byte = |pair: &[u8]| match *pair {
            [high, low] => Some(digit(high)? << 4 | digit(low)?),
            _ => None,
        };
        let bytes: Option<_> = digits.as_bytes().chunks(2).map(byte).collect();
        bytes.ok_or(Error { at: start, problem: Problem::Expected("pairs of hexadecimal digits") })
    }

    /// A string, and whether it is whole: a lone surrogate is replaced.
    fn string(&mut self) -> Result<(String, bool), Error> {
        self.take(b'"', "a string")?;
        let (mut string, mut is_whole) = (String::new(), true);
        loop {
            let start = self.at;
            while self.byte().is_some_and(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20)) {
                self.at += 1;
            }
            string.push_str(self.text.get(start..self.at).unwrap_or_default());
            match self.byte() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok((string, is_whole));
                }
                Some(b'\\') => {
                    let c = self.escape()?;
                    is_whole &= c.is_some();
                    string.push(c.unwrap_or(char::REPLACEMENT_CHARACTER));
                }
                _ => return Err(self.expected("the end of the string")),
            }
        }
    }

    /// What an escape stands for; `None` for a lone surrogate.
    fn escape(&mut self) -> Result<Option<char>, Error> {
        self.at += 1;
        let c = match self.byte() {
            Some(b'u') => {
                self.at += 1;
                return self.unicode();
            }
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            _ => return Err(self.expected("an escape")),
        };
        self.at += 1;
        Ok(Some(c))
    }

    fn unicode(&mut self) -> Result<Option<char>, Error> {
        let first = self.four_digits()?;
        if !(0xD800..0xDC00).contains(&first) {
            return Ok(char::from_u32(first));
        }
        let after_first = self.at;
        if self.text.get(self.at..).is_some_and(|rest| rest.starts_with("\\u")) {
            self.at += 2;
            let second = self.four_digits()?;
            if (0xDC00..0xE000).contains(&second) {
                return Ok(char::from_u32(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)));
            }
        }
        self.at = after_first; // what follows stands for itself
        Ok(None)
    }

    fn four_digits(&mut self) -> Result<u32, Error> {
        let digits = self.text.get(self.at..self.at + 4).filter(|digits| !digits.starts_with('+'));
        let Some(number) = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()) else {
            return Err(self.expected("four hexadecimal digits"));
        };
        self.at += 4;
        Ok(number)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::{Just, Strategy, any};
    use proptest::{prop_assert_eq, prop_oneof, proptest};

    use super::*;

    fn parse(text: &str) -> Result<Value, Problem> {
        Value::parse(text.as_bytes()).map_err(|error| error.problem)
    }

    fn other(type_name: &str) -> Value {
        Value::Other { type_name: type_name.to_owned() }
    }

    #[test]
    fn what_is_not_a_value_is_refused_where_it_is_wrong() {
        for (text, at) in [
            ("", 0),
            ("nul", 0),
            ("[1,]", 3),
            ("[1 2]", 3),
            ("01", 2),
            ("-", 1),
            ("1.", 2),
            ("1.e5", 2),
            ("1e", 2),
            ("1e999", 0),
            ("NaN", 0),
            ("\"a", 2),
            ("\"a\n\"", 2),
            ("\"\\x\"", 2),
            ("\"\\u+123\"", 3),
            ("{}", 1),
            ("{\"x\":1}", 1),
            ("{\"t\":[],\"s\":[]}", 7),
            ("{\"f\":\"1\"}", 5),
            ("{\"c\":[1,2]}", 5),
            ("{\"b\":\"0\"}", 5),
            ("{\"b\":\"+1\"}", 5),
            ("{\"i\":\"+1\"}", 6),
            ("{\"i\":\"1.0\"}", 7),
            ("{\"d\":[[1]]}", 8),
            ("1 1", 2),
        ] {
            assert_eq!(Value::parse(text.as_bytes()).map_err(|error| error.at), Err(at), "{text}");
        }
        let error = Value::parse(b"[1,\xff").unwrap_err();
        assert_eq!(error.to_string(), "value, byte 3: not UTF-8");
    }

    #[test]
    fn what_cannot_be_hashed_is_neither_in_a_set_nor_a_key() {
        assert_eq!(parse("{\"s\":[[1]]}"), Ok(Value::Set(vec![other("hashable list")])));
        let key = (other("hashable tuple"), int("1"));
        assert_eq!(parse("{\"d\":[[{\"t\":[{\"s\":[]}]},1]]}"), Ok(Value::Dict(vec![key])));
    }

    #[test]
    fn everything_is_bounded() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(&nested(MAX_DEPTH)).is_ok());
        assert_eq!(parse(&nested(MAX_DEPTH + 1)), Err(Problem::TooDeep));
        assert_eq!(parse(&"[".repeat(1 << 20)), Err(Problem::TooDeep));
        assert_eq!(parse(&"{\"t\":[".repeat(1 << 20)), Err(Problem::TooDeep));
        assert_eq!(parse(&"{\"d\":[[{\"t\":[".repeat(1 << 16)), Err(Problem::TooDeep));
        assert_eq!(parse(&" ".repeat(MAX_BYTES + 1)), Err(Problem::TooLong));
        let items = |count: usize| format!("[{}1]", "1,".repeat(count - 1));
        assert_eq!(parse(&items(MAX_ITEMS)), Err(Problem::TooMany));
    }

    #[test]
    fn numbers_keep_their_kind_and_their_value() {
        assert_eq!(parse("1"), Ok(int("1")));
        assert_eq!(parse("-0"), Ok(int("0")));
        assert_eq!(parse("1.0"), Ok(Value::Float(1.0)));
        assert_eq!(parse("1E+2"), Ok(Value::Float(100.0)));
        assert_eq!(Value::Float(1e16).to_json(), "1e+16");
        assert_eq!(Value::Float(1.0).to_json(), "1.0");
        let long = "9".repeat(PLAIN_DIGITS + 1);
        assert_eq!(parse(&long), Ok(int(&long)));
        assert_eq!(int(&long).to_json(), format!("{{\"i\":\"{long}\"}}"));
        assert_eq!(parse(&int(&long).to_json()), Ok(int(&long)));
    }

    #[test]
    fn an_int_that_is_too_long_is_something_else() {
        let (longest, longer) = ("7".repeat(MAX_DIGITS), "7".repeat(MAX_DIGITS + 1));
        assert_eq!(parse(&format!("-{longest}")), Ok(int(&format!("-{longest}"))));
        let too_long = other("int of more than 100000 digits");
        assert_eq!(parse(&format!("[{longer},1]")), Ok(Value::List(vec![too_long.clone(), int("1")])));
        assert_eq!(parse(&format!("{{\"i\":\"-{longer}\"}}")), Ok(too_long));
    }

    #[test]
    fn a_lone_surrogate_makes_a_string_something_else() {
        assert_eq!(parse("\"\\ud83e\\udd80\""), Ok(Value::Str("🦀".to_owned())));
        for text in ["\"a\\ud800\"", "\"\\udc00\\ud800\"", "\"\\ud800\\u0041\"", "\"\\ud800\\n\""] {
            assert_eq!(parse(text), Ok(other("str with a lone surrogate")));
        }
    }

    fn leaf() -> impl Strategy<Value = Value> {
        let float = prop_oneof![
            any::<f64>().prop_filter("NaN is not itself", |number| !number.is_nan()),
            Just(f64::INFINITY),
            Just(-0.0),
        ];
        prop_oneof![
            Just(Value::None),
            any::<bool>().prop_map(Value::Bool),
            any::<i128>().prop_map(|number| Value::Int(number.to_string())),
            float.clone().prop_map(Value::Float),
            any::<String>().prop_map(Value::Str),
            any::<Vec<u8>>().prop_map(Value::Bytes),
            (float.clone(), float).prop_map(|(re, im)| Value::Complex(re, im)),
        ]
    }

    /// Values without NaN or `Other`, of which each equals itself; what is in a set may be there twice.
    pub(in crate::runner::value) fn plain() -> impl Strategy<Value = Value> {
        let hashable = leaf().prop_recursive(3, 12, 4, |inner| {
            let items = proptest::collection::vec(inner, 0..4);
            prop_oneof![items.clone().prop_map(Value::Tuple), items.prop_map(Value::FrozenSet)]
        });
        let sets = proptest::collection::vec(hashable.clone(), 0..4).prop_map(Value::Set);
        prop_oneof![hashable.clone(), sets].prop_recursive(4, 32, 5, move |inner| {
            let items = proptest::collection::vec(inner.clone(), 0..5);
            let pairs = proptest::collection::vec((hashable.clone(), inner), 0..4);
            prop_oneof![
                items.clone().prop_map(Value::List),
                items.prop_map(Value::Tuple),
                pairs.prop_map(Value::Dict)
            ]
        })
    }

    proptest! {
        #[test]
        fn a_value_comes_back_from_its_line(value in plain()) {
            let text = value.to_json();
            prop_assert_eq!(text.find(['\n', '\r']), None);
            prop_assert_eq!(Value::parse(text.as_bytes()), Ok(value));
        }

        #[test]
        fn no_bytes_make_the_reader_panic(bytes in any::<Vec<u8>>()) {
            let _ = Value::parse(&bytes);
        }

        #[test]
        fn no_text_of_the_right_letters_makes_the_reader_panic(
            text in r#"[\[\]{}",:\\udfstci0-9eE.\-né]{0,30}"#, value in plain(), cut in any::<usize>(),
        ) {
            let _ = Value::parse(text.as_bytes());
            let whole = value.to_json().into_bytes();
            let cut = cut % (whole.len() + 1);
            let _ = Value::parse(&whole[..cut]);
            let _ = Value::parse(&[&whole[..cut], text.as_bytes(), &whole[cut..]].concat());
        }
    }
}
