//! A value as Python's `repr` shows it.

use std::fmt::{self, Display, Formatter, Write};

use super::Value;
use super::json::float_text;

/// So many characters of a value are shown in a sentence.
pub(super) const SHORT: usize = 60;

impl Value {
    /// The first `max_chars` characters of its `repr`; the rest becomes three dots.
    pub fn short(&self, max_chars: usize) -> String {
        let mut short = Short { text: String::new(), room: max_chars };
        if write!(short, "{self}").is_ok() {
            return short.text;
        }
        let kept = short.text.char_indices().nth(max_chars.saturating_sub(3));
        short.text.truncate(kept.map_or(short.text.len(), |(at, _)| at));
        short.text.push_str("...");
        short.text
    }
}

/// Text that stops the writer when it is full.
struct Short {
    text: String,
    room: usize,
}

impl Write for Short {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        match part.char_indices().nth(self.room) {
            None => {
                self.text.push_str(part);
                self.room -= part.chars().count();
                Ok(())
            }
            Some((at, _)) => {
                self.text.push_str(part.get(..at).unwrap_or_default());
                self.room = 0;
                Err(fmt::Error)
            }
        }
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Bool(true) => f.write_str("True"),
            Self::Bool(false) => f.write_str("False"),
            Self::Int(digits) => f.write_str(digits),
            Self::Float(number) => f.write_str(&float(*number)),
            Self::Str(text) => string(f, text),
            Self::Bytes(bytes) => {
                let quote = if bytes.contains(&b'\'') && !bytes.contains(&b'"') { '"' } else { '\'' };
                write!(f, "b{quote}")?;
                for byte in bytes {
                    match byte {
                        b'\n' | b'\r' | b'\t' | b'\\' => write!(f, "{}", byte.escape_ascii())?,
                        b' '..=b'~' if char::from(*byte) == quote => write!(f, "\\{quote}")?,
                        b' '..=b'~' => f.write_char(char::from(*byte))?,
                        _ => write!(f, "\\x{byte:02x}")?,
                    }
                }
                f.write_char(quote)
            }
            Self::List(items) => listed(f, "[", items, "]"),
            Self::Tuple(items) => listed(f, "(", items, if items.len() == 1 { ",)" } else { ")" }),
            Self::Set(items) if items.is_empty() => f.write_str("set()"),
            Self::Set(items) => listed(f, "{", items, "}"),
            Self::FrozenSet(items) if items.is_empty() => f.write_str("frozenset()"),
            Self::FrozenSet(items) => listed(f, "frozenset({", items, "})"),
            Self::Dict(pairs) => {
                f.write_char('{')?;
                for (index, (key, value)) in pairs.iter().enumerate() {
                    let comma = if index > 0 { ", " } else { "" };
                    write!(f, "{comma}{key}: {value}")?;
                }
                f.write_char('}')
            }
            Self::Complex(re, im) => complex(f, *re, *im),
            Self::Other { type_name } => write!(f, "<{type_name}>"),
        }
    }
}

fn float(number: f64) -> String {
    match number {
        _ if number.is_finite() => float_text(number),
        _ if number.is_nan() => "nan".to_owned(),
        _ if number > 0.0 => "inf".to_owned(),
        _ => "-inf".to_owned(),
    }
}

fn complex(f: &mut Formatter<'_>, re: f64, im: f64) -> fmt::Result {
    let part = |number| {
        let text = float(number);
        text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
    };
    if re == 0.0 && re.is_sign_positive() {
        return write!(f, "{}j", part(im));
    }
    let plus = if part(im).starts_with('-') { "" } else { "+" };
    write!(f, "({}{plus}{}j)", part(re), part(im))
}

fn listed(f: &mut Formatter<'_>, open: &str, items: &[Value], close: &str) -> fmt::Result {
    f.write_str(open)?;
    for (index, item) in items.iter().enumerate() {
        let comma = if index > 0 { ", " } else { "" };
        write!(f, "{comma}{item}")?;
    }
    f.write_str(close)
}

fn string(f: &mut Formatter<'_>, text: &str) -> fmt::Result {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    f.write_char(quote)?;
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' | '\\' => write!(f, "{}", c.escape_default())?,
            c if c == quote => write!(f, "\\{quote}")?,
            '\'' | '"' => f.write_char(c)?,
            c if is_shown(c) => f.write_char(c)?,
            c if u32::from(c) < 0x100 => write!(f, "\\x{:02x}", u32::from(c))?,
            c if u32::from(c) < 0x10000 => write!(f, "\\u{:04x}", u32::from(c))?,
            c => write!(f, "\\U{:08x}", u32::from(c))?,
        }
    }
    f.write_char(quote)
}

/// Whether a character has a shape of its own, as near to Python's `isprintable` as Rust's tables come.
fn is_shown(c: char) -> bool {
    c == ' ' || (!c.is_whitespace() && (c.is_ascii_graphic() || c.escape_debug().len() == 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_look_as_in_python() {
        for (text, shown) in [
            ("null", "None"),
            ("[true,false,1,-1.0,1e16,1e-7,2.5e300]", "[True, False, 1, -1.0, 1e+16, 1e-07, 2.5e+300]"),
            (r#"[{"f":"nan"},{"f":"-inf"}]"#, "[nan, -inf]"),
            (r#""it's""#, r#""it's""#),
            (r#""'\"\n\u0000é\u2028\\""#, r#"'\'"\n\x00é\u2028\\'"#),
            (r#"{"b":"00270a41ff"}"#, r#"b"\x00'\nA\xff""#),
            (r#"{"t":[]}"#, "()"),
            (r#"{"t":[1]}"#, "(1,)"),
            (
                r#"{"t":[1,{"s":[]},{"fs":[]},{"s":[1,2]},{"fs":[1]}]}"#,
                "(1, set(), frozenset(), {1, 2}, frozenset({1}))",
            ),
            (r#"{"d":[["a",1],[2,[]]]}"#, "{'a': 1, 2: []}"),
            (r#"[{"c":[0.0,1.0]},{"c":[1.5,-2.0]},{"c":[1.0,{"f":"nan"}]}]"#, "[1j, (1.5-2j), (1+nanj)]"),
            (r#"{"o":"generator"}"#, "<generator>"),
        ] {
            assert_eq!(Value::parse(text.as_bytes()).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn a_long_value_is_cut() {
        let value = Value::List(vec![Value::Str("é".to_owned()); 1000]);
        assert_eq!(value.short(12), "['é', 'é'...");
        assert_eq!(Value::Tuple(vec![]).short(2), "()");
        assert_eq!(value.short(0), "...");
    }
}
