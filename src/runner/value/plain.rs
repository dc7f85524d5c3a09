//! Values as JSON that people and other programs write and read.
//!
//! Lists, objects with string keys, strings, numbers, booleans and null are what they look like. What JSON
//! lacks is an object with one key that begins with a dollar sign: `{"$tuple": [1, 2]}`, `$set`,
//! `$frozenset`, `$dict` (a list of pairs), `$bytes` (hexadecimal), `$float` (`"nan"`, `"inf"`, `"-inf"`)
//! and `$complex` (two numbers).

use std::fmt::Write;

use super::Value;
use super::json::{float_text, write_string};

impl Value {
    /// This value as such JSON, on one line.
    pub fn to_plain_json(&self) -> String {
        let mut text = String::new();
        self.write_plain(&mut text);
        text
    }

    fn write_plain(&self, out: &mut String) {
        match self {
            Self::None => out.push_str("null"),
            Self::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Self::Int(digits) => out.push_str(digits),
            Self::Float(number) => write_float(out, *number),
            Self::Str(text) => write_string(out, text),
            Self::Bytes(bytes) => write_special(out, "$bytes", |out| {
                let hex = bytes.iter().fold(String::new(), |mut hex, byte| {
                    let _ = write!(hex, "{byte:02x}"); // a String takes everything
                    hex
                });
                write_string(out, &hex);
            }),
            Self::List(items) => write_items(out, items),
            Self::Tuple(items) => write_special(out, "$tuple", |out| write_items(out, items)),
            Self::Set(items) => write_special(out, "$set", |out| write_items(out, items)),
            Self::FrozenSet(items) => write_special(out, "$frozenset", |out| write_items(out, items)),
            Self::Dict(pairs) => write_dict(out, pairs),
            Self::Complex(re, im) => write_special(out, "$complex", |out| {
                out.push('[');
                write_float(out, *re);
                out.push(',');
                write_float(out, *im);
                out.push(']');
            }),
            Self::Other { type_name } => write_special(out, "$other", |out| write_string(out, type_name)),
        }
    }

    /// The value that such JSON stands for, given what [`Value::parse_plain`] made of it; the error is the
    /// object that stands for none.
    pub fn from_plain(self) -> Result<Self, String> {
        Ok(match self {
            Self::List(items) => Self::List(each(items)?),
            Self::Dict(pairs) => match special(&pairs) {
                Some(key) => {
                    let key = key.to_owned();
                    let inner = pairs.into_iter().next().map_or(Self::None, |(_, inner)| inner);
                    from_special(&key, inner).ok_or_else(|| format!("an object with {key:?}"))?
                }
                None => Self::Dict(
                    pairs
                        .into_iter()
                        .map(|(key, value)| Ok((key, value.from_plain()?)))
                        .collect::<Result<_, String>>()?,
                ),
            },
            Self::Other { type_name } => return Err(format!("a {type_name}")),
            simple => simple,
        })
    }
}

fn each(items: Vec<Value>) -> Result<Vec<Value>, String> {
    items.into_iter().map(Value::from_plain).collect()
}

/// The key of an object that stands for something else.
fn special(pairs: &[(Value, Value)]) -> Option<&str> {
    match pairs {
        [(Value::Str(key), _)] if key.starts_with('$') => Some(key),
        _ => None,
    }
}

fn from_special(key: &str, inner: Value) -> Option<Value> {
    Some(match (key, inner) {
        ("$tuple", Value::List(items)) => Value::Tuple(each(items).ok()?),
        ("$set", Value::List(items)) => Value::Set(hashable(items)?),
        ("$frozenset", Value::List(items)) => Value::FrozenSet(hashable(items)?),
        ("$dict", Value::List(items)) => Value::Dict(items.into_iter().map(pair).collect::<Option<_>>()?),
        ("$bytes", Value::Str(digits)) => Value::Bytes(bytes(&digits)?),
        ("$float", Value::Str(word)) => Value::Float(match &*word {
            "nan" => f64::NAN,
            "inf" => f64::INFINITY,
            "-inf" => f64::NEG_INFINITY,
            _ => return None,
        }),
        ("$complex", Value::List(parts)) => match *each(parts).ok()? {
            [Value::Float(re), Value::Float(im)] => Value::Complex(re, im),
            _ => return None,
        },
        _ => return None,
    })
}

fn hashable(items: Vec<Value>) -> Option<Vec<Value>> {
    each(items).ok().filter(|items| items.iter().all(Value::is_hashable))
}

fn pair(item: Value) -> Option<(Value, Value)> {
    let Value::List(pair) = item else { return None };
    let [key, value] = <[Value; 2]>::try_from(each(pair).ok()?).ok()?;
    key.is_hashable().then_some((key, value))
}

fn bytes(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let byte = |pair: &[u8]| match *pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    };
    digits.as_bytes().chunks(2).map(byte).collect()
}

fn write_float(out: &mut String, number: f64) {
    match number {
        _ if number.is_finite() => out.push_str(&float_text(number)),
        _ if number.is_nan() => out.push_str("{\"$float\":\"nan\"}"),
        _ if number > 0.0 => out.push_str("{\"$float\":\"inf\"}"),
        _ => out.push_str("{\"$float\":\"-inf\"}"),
    }
}

fn write_special(out: &mut String, key: &str, write: impl FnOnce(&mut String)) {
    out.push('{');
    write_string(out, key);
    out.push(':');
    write(out);
    out.push('}');
}

fn write_items(out: &mut String, items: &[Value]) {
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        item.write_plain(out);
    }
    out.push(']');
}

fn write_dict(out: &mut String, pairs: &[(Value, Value)]) {
    let has_names = pairs.iter().all(|(key, _)| matches!(key, Value::Str(_)));
    if !has_names || special(pairs).is_some() {
        return write_special(out, "$dict", |out| {
            out.push('[');
            for (index, (key, value)) in pairs.iter().enumerate() {
                out.push_str(if index > 0 { ",[" } else { "[" });
                key.write_plain(out);
                out.push(',');
                value.write_plain(out);
                out.push(']');
            }
            out.push(']');
        });
    }
    out.push('{');
    for (index, (key, value)) in pairs.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        key.write_plain(out);
        out.push(':');
        value.write_plain(out);
    }
    out.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Value {
        Value::parse_plain(text.as_bytes()).unwrap().from_plain().unwrap()
    }

    #[test]
    fn what_json_lacks_comes_back() {
        for (tagged, text) in [
            (r#"[null,true,1,1.5,"é",{"i":"-7"}]"#, r#"[null,true,1,1.5,"é",-7]"#),
            (r#"{"d":[["a",{"t":[1,{"s":[2]}]}]]}"#, r#"{"a":{"$tuple":[1,{"$set":[2]}]}}"#),
            (
                r#"{"d":[[1,2],[{"t":[]},{"fs":[]}]]}"#,
                r#"{"$dict":[[1,2],[{"$tuple":[]},{"$frozenset":[]}]]}"#,
            ),
            (r#"{"d":[["$set",1]]}"#, r#"{"$dict":[["$set",1]]}"#),
            (r#"{"b":"00ff"}"#, r#"{"$bytes":"00ff"}"#),
            (r#"[{"f":"inf"},{"f":"-inf"}]"#, r#"[{"$float":"inf"},{"$float":"-inf"}]"#),
            (r#"{"c":[1.0,{"f":"-inf"}]}"#, r#"{"$complex":[1.0,{"$float":"-inf"}]}"#),
            (r#"{"d":[]}"#, "{}"),
        ] {
            let value = Value::parse(tagged.as_bytes()).unwrap();
            assert_eq!(value.to_plain_json(), text);
            assert_eq!(plain(text), value);
        }
    }

    #[test]
    fn an_int_of_any_length_is_kept() {
        let digits = "9".repeat(1000);
        assert_eq!(plain(&digits), Value::Int(digits.clone()));
        assert_eq!(plain(&digits).to_plain_json(), digits);
    }

    #[test]
    fn what_pythons_json_writes_is_read() {
        assert_eq!(plain("[Infinity, -Infinity, 1e999]").to_string(), "[inf, -inf, inf]");
        assert_eq!(plain("NaN").to_string(), "nan");
        assert_eq!(plain(r#"{"a": 1, "b": 2, "a": 3}"#).to_string(), "{'a': 3, 'b': 2}");
        assert_eq!(plain(r#"{"a": {}, "b": [{"c": 1}]}"#).to_string(), "{'a': {}, 'b': [{'c': 1}]}");
    }

    #[test]
    fn what_stands_for_nothing_is_refused() {
        for text in [
            r#"{"$tuple":1}"#,
            r#"{"$set":[[]]}"#,
            r#"{"$dict":[[1]]}"#,
            r#"{"$float":"1"}"#,
            r#"{"$bytes":"0"}"#,
            r#"{"$x":[]}"#,
            r#"["\ud800"]"#,
        ] {
            assert!(Value::parse_plain(text.as_bytes()).unwrap().from_plain().is_err(), "{text}");
        }
        assert!(Value::parse_plain(&b"[".repeat(300)).is_err());
    }
}
