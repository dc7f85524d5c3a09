//! A row's fields, with the type they must have.

use std::sync::Arc;

use super::{Files, Problem, Program};
use crate::runner::value::Value;

/// An object; no two keys are equal.
#[derive(Clone, Copy)]
pub(super) struct Row<'a>(pub(super) &'a [(Value, Value)]);

impl<'a> Row<'a> {
    /// The object that a value is.
    pub(super) fn of(value: &'a Value) -> Option<Self> {
        match value {
            Value::Dict(pairs) => Some(Self(pairs)),
            _ => None,
        }
    }

    /// The value of a key; null counts as absent.
    pub(super) fn get(self, key: &str) -> Option<&'a Value> {
        let found = self.0.iter().find(|(name, _)| matches!(name, Value::Str(name) if name == key));
        found.map(|(_, value)| value).filter(|value| !matches!(value, Value::None))
    }

    /// Whether a key is there, be it null.
    pub(super) fn has(self, key: &str) -> bool {
        self.0.iter().any(|(name, _)| matches!(name, Value::Str(name) if name == key))
    }

    /// The keys as a sentence has them: the first few.
    pub(super) fn keys(self) -> String {
        const FEW: usize = 8;
        let mut keys: Vec<String> = self.0.iter().take(FEW).map(|(key, _)| key.short(30)).collect();
        if self.0.len() > FEW {
            keys.push("...".to_owned());
        }
        if keys.is_empty() {
            "an empty object".to_owned()
        } else {
            format!("an object with {}", keys.join(", "))
        }
    }

    /// A text that may be absent.
    pub(super) fn text(self, key: &str) -> Result<Option<&'a str>, Problem> {
        self.get(key).map(|value| text_of(value, key)).transpose()
    }

    /// A text that must be there.
    pub(super) fn need_text(self, key: &'static str) -> Result<&'a str, Problem> {
        self.text(key)?.ok_or(Problem::Missing(key))
    }

    /// A list that may be absent.
    pub(super) fn list(self, key: &str) -> Result<Option<&'a [Value]>, Problem> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::List(items)) => Ok(Some(items)),
            Some(other) => Err(wrong_type(key, "a list", other)),
        }
    }

    /// A list of texts, empty when absent.
    pub(super) fn texts(self, key: &str) -> Result<Vec<&'a str>, Problem> {
        let items = self.list(key)?.unwrap_or_default();
        items.iter().enumerate().map(|(index, item)| text_of(item, &format!("{key}[{index}]"))).collect()
    }

    /// An object that may be absent.
    pub(super) fn object(self, key: &str) -> Result<Option<Row<'a>>, Problem> {
        let object = |value| Row::of(value).ok_or_else(|| wrong_type(key, "an object", value));
        self.get(key).map(object).transpose()
    }

    /// A number that may be absent.
    pub(super) fn number(self, key: &str) -> Result<Option<f64>, Problem> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Float(number)) => Ok(Some(*number)),
            Some(Value::Int(digits)) => Ok(digits.parse().ok()),
            Some(other) => Err(wrong_type(key, "a number", other)),
        }
    }

    /// A name: a text, or a number as its digits.
    pub(super) fn name(self, key: &str) -> Result<Option<String>, Problem> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Str(text)) => Ok(Some(text.clone())),
            Some(Value::Int(digits)) => Ok(Some(digits.clone())),
            Some(other) => Err(wrong_type(key, "a string or an int", other)),
        }
    }
}

/// The text that a value is.
pub(super) fn text_of<'a>(value: &'a Value, key: &str) -> Result<&'a str, Problem> {
    match value {
        Value::Str(text) => Ok(text),
        other => Err(wrong_type(key, "a string", other)),
    }
}

/// What to say of a value of another type.
pub(super) fn wrong_type(key: &str, wanted: &'static str, got: &Value) -> Problem {
    Problem::WrongType { key: key.to_owned(), wanted, got: got.type_name().to_owned() }
}

/// The texts by path that an object holds.
pub(super) fn files(value: &Value, key: &str) -> Result<Files, Problem> {
    let Value::Dict(pairs) = value else { return Err(wrong_type(key, "an object of paths to texts", value)) };
    let file = |(path, text): &(Value, Value)| {
        let path = text_of(path, key)?;
        Ok((Arc::from(path), text_of(text, &format!("{key}[{path:?}]"))?.into()))
    };
    pairs.iter().map(file).collect()
}

/// The candidate that a string or an object of texts is.
pub(super) fn program(value: &Value, key: &str) -> Result<Program, Problem> {
    match value {
        Value::Str(code) => Ok(Program::Code((&**code).into())),
        other => Ok(Program::Files(files(other, key)?)),
    }
}
