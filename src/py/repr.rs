//! `repr` of values: a call that makes the value again, with Python's quoting; defaults are left out.

use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyString};

/// A call under construction.
pub struct Call<'py> {
    py: Python<'py>,
    text: String,
    first: bool,
}

/// Text as Python quotes it.
pub fn quoted(py: Python<'_>, text: &str) -> String {
    PyString::new(py, text).repr().map_or_else(|_| format!("{text:?}"), |r| r.to_string())
}

/// A number as Python writes it.
pub fn number(py: Python<'_>, value: f64) -> String {
    PyFloat::new(py, value).repr().map_or_else(|_| value.to_string(), |r| r.to_string())
}

impl<'py> Call<'py> {
    /// `name(`
    pub fn new(py: Python<'py>, name: &str) -> Self {
        Self { py, text: format!("{name}("), first: true }
    }

    /// An argument that is already written as Python.
    pub fn raw(mut self, keyword: &str, value: &str) -> Self {
        if !self.first {
            self.text.push_str(", ");
        }
        self.first = false;
        if !keyword.is_empty() {
            self.text.push_str(keyword);
            self.text.push('=');
        }
        self.text.push_str(value);
        self
    }

    /// A text argument.
    pub fn text(self, keyword: &str, value: &str) -> Self {
        let quoted = quoted(self.py, value);
        self.raw(keyword, &quoted)
    }

    /// A text argument, left out when it is the default.
    pub fn text_unless(self, keyword: &str, value: &str, default: &str) -> Self {
        if value == default { self } else { self.text(keyword, value) }
    }

    /// A number.
    pub fn number(self, keyword: &str, value: f64) -> Self {
        let written = number(self.py, value);
        self.raw(keyword, &written)
    }

    /// A number, left out when it is the default.
    pub fn number_unless(self, keyword: &str, value: f64, default: f64) -> Self {
        if value == default { self } else { self.number(keyword, value) }
    }

    /// `)`
    pub fn done(mut self) -> String {
        self.text.push(')');
        self.text
    }
}
