//! Plain data between Python and the core: the user's own values in, what a candidate returned out.
//!
//! The rules for what is plain are those of `python/testgrad/_values.py`, which writes it in the candidate's
//! process; here what is not plain is refused, since a test cannot expect it.

use pyo3::exceptions::PyValueError;
use pyo3::inspect::PyStaticExpr;
use pyo3::prelude::*;
use pyo3::type_hint_identifier;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyComplex, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PySet, PyString,
    PyTuple,
};

use crate::runner::value::{MAX_DEPTH, MAX_DIGITS, MAX_ITEMS, Place, Value};

const KINDS: &str =
    "None, bool, int, float, complex, str, bytes, list, tuple, set, frozenset, dict or a numpy array";

/// An int of more bits has more digits than [`MAX_DIGITS`].
const MAX_BITS: usize = 332_193;

/// Why an object has no counterpart on the other side.
enum Refusal {
    NotPlain { place: Place, problem: String },
    Raised(PyErr),
}

impl Refusal {
    fn because(problem: impl Into<String>) -> Self {
        Self::NotPlain { place: Place::default(), problem: problem.into() }
    }

    /// The same, seen from what contains the object.
    fn within(mut self, step: impl FnOnce(&mut Place)) -> Self {
        if let Self::NotPlain { place, .. } = &mut self {
            step(place);
        }
        self
    }
}

impl From<PyErr> for Refusal {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

impl From<Refusal> for PyErr {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NotPlain { place, problem } => {
                PyValueError::new_err(format!("{}{problem}", place.prefix()))
            }
            Refusal::Raised(error) => error,
        }
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Value {
    type Error = PyErr;
    const INPUT_TYPE: PyStaticExpr = type_hint_identifier!("builtins", "object");

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Ok(Reading { depth: 0, items: 0 }.value(&object)?)
    }
}

/// One value being read.
struct Reading {
    depth: usize,
    items: usize,
}

impl Reading {
    fn value(&mut self, object: &Bound<'_, PyAny>) -> Result<Value, Refusal> {
        self.items += 1;
        if self.items > MAX_ITEMS {
            return Err(Refusal::because(format!("more than {MAX_ITEMS} items")));
        }
        if let Some(simple) = simple(object)? {
            return Ok(simple);
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Refusal::because(format!("nested deeper than {MAX_DEPTH}, or in itself")));
        }
        let value = self.container(object)?;
        self.depth -= 1;
        Ok(value)
    }

    fn container(&mut self, object: &Bound<'_, PyAny>) -> Result<Value, Refusal> {
        if let Ok(list) = object.cast::<PyList>() {
            return Ok(Value::List(self.sequence(list.iter())?));
        }
        if let Ok(tuple) = object.cast::<PyTuple>() {
            return Ok(Value::Tuple(self.sequence(tuple.iter())?));
        }
        if let Ok(set) = object.cast::<PySet>() {
            return Ok(Value::Set(set.iter().map(|item| self.value(&item)).collect::<Result<_, _>>()?));
        }
        if let Ok(set) = object.cast::<PyFrozenSet>() {
            return Ok(Value::FrozenSet(set.iter().map(|item| self.value(&item)).collect::<Result<_, _>>()?));
        }
        if let Ok(dict) = object.cast::<PyDict>() {
            let mut pairs = Vec::new();
            for (key, value) in dict.iter() {
                let key = self.value(&key)?;
                let value =
                    self.value(&value).map_err(|refusal| refusal.within(|place| place.in_dict(&key)))?;
                pairs.push((key, value));
            }
            return Ok(Value::Dict(pairs));
        }
        let plain = values(object.py())?.call_method1("as_plain", (object,))?;
        if plain.is_none() {
            let kind = object.get_type().name()?;
            return Err(Refusal::because(format!("{kind} is not plain data; use {KINDS}")));
        }
        self.value(&plain)
    }

    fn sequence<'py>(
        &mut self,
        items: impl Iterator<Item = Bound<'py, PyAny>>,
    ) -> Result<Vec<Value>, Refusal> {
        let value = |(index, item): (usize, Bound<'py, PyAny>)| {
            self.value(&item).map_err(|refusal| refusal.within(|place| place.in_sequence(index)))
        };
        items.enumerate().map(value).collect()
    }
}

/// What contains nothing else.
fn simple(object: &Bound<'_, PyAny>) -> Result<Option<Value>, Refusal> {
    Ok(Some(if object.is_none() {
        Value::None
    } else if let Ok(value) = object.cast::<PyBool>() {
        Value::Bool(value.is_true())
    } else if let Ok(value) = object.cast::<PyInt>() {
        Value::Int(digits(value)?)
    } else if let Ok(value) = object.cast::<PyFloat>() {
        Value::Float(value.value())
    } else if let Ok(value) = object.cast::<PyString>() {
        let text = value.to_str().map_err(|_| Refusal::because("a str with a lone surrogate"))?;
        Value::Str(text.to_owned())
    } else if let Ok(value) = object.cast::<PyBytes>() {
        Value::Bytes(value.as_bytes().to_vec())
    } else if let Ok(value) = object.cast::<PyByteArray>() {
        Value::Bytes(value.to_vec())
    } else if let Ok(value) = object.cast::<PyComplex>() {
        Value::Complex(value.real(), value.imag())
    } else {
        return Ok(None);
    }))
}

fn digits(int: &Bound<'_, PyInt>) -> Result<String, Refusal> {
    if let Ok(small) = int.extract::<i64>() {
        return Ok(small.to_string());
    }
    let too_long = || Refusal::because(format!("an int of more than {MAX_DIGITS} digits"));
    if int.call_method0("bit_length")?.extract::<usize>()? > MAX_BITS {
        return Err(too_long());
    }
    // Python itself refuses to write long ones.
    let digits: String = values(int.py())?.call_method1("digits", (int,))?.extract()?;
    match digits.trim_start_matches('-').len() {
        ..=MAX_DIGITS => Ok(digits),
        _ => Err(too_long()),
    }
}

/// The module that has the rules.
fn values(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import("testgrad._values")
}

impl<'py> IntoPyObject<'py> for &Value {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;
    const OUTPUT_TYPE: PyStaticExpr = type_hint_identifier!("typing", "Any");

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        Ok(object(py, self)?)
    }
}

impl<'py> IntoPyObject<'py> for Value {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;
    const OUTPUT_TYPE: PyStaticExpr = type_hint_identifier!("typing", "Any");

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        (&self).into_pyobject(py)
    }
}

fn object<'py>(py: Python<'py>, value: &Value) -> Result<Bound<'py, PyAny>, Refusal> {
    let set = |items: &[Value]| items.iter().map(|item| object(py, item)).collect::<Result<Vec<_>, _>>();
    let sequence = |items: &[Value]| {
        let within = |(index, item)| {
            object(py, item).map_err(|refusal| refusal.within(|place| place.in_sequence(index)))
        };
        items.iter().enumerate().map(within).collect::<Result<Vec<_>, _>>()
    };
    Ok(match value {
        Value::None => py.None().into_bound(py),
        Value::Bool(value) => PyBool::new(py, *value).to_owned().into_any(),
        Value::Int(digits) => match digits.parse::<i64>() {
            Ok(small) => PyInt::new(py, small).into_any(),
            Err(_) => values(py)?.call_method1("integer", (digits,))?,
        },
        Value::Float(value) => PyFloat::new(py, *value).into_any(),
        Value::Str(text) => PyString::new(py, text).into_any(),
        Value::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
        Value::List(items) => PyList::new(py, sequence(items)?)?.into_any(),
        Value::Tuple(items) => PyTuple::new(py, sequence(items)?)?.into_any(),
        Value::Set(items) => PySet::new(py, set(items)?)?.into_any(),
        Value::FrozenSet(items) => PyFrozenSet::new(py, set(items)?)?.into_any(),
        Value::Dict(pairs) => {
            let dict = PyDict::new(py);
            for (key, value) in pairs {
                let value =
                    object(py, value).map_err(|refusal| refusal.within(|place| place.in_dict(key)))?;
                dict.set_item(object(py, key)?, value)?;
            }
            dict.into_any()
        }
        Value::Complex(re, im) => PyComplex::from_doubles(py, *re, *im).into_any(),
        Value::Other { type_name } => {
            return Err(Refusal::because(format!("{type_name} is not plain data")));
        }
    })
}

/// The value of a line that a candidate's process wrote.
///
/// Raises:
///     ValueError: It is no such line, or what it stands for is not plain data.
#[pyfunction]
pub fn _parse_value(py: Python<'_>, text: &str) -> PyResult<Value> {
    Ok(py.detach(|| Value::parse(text.as_bytes()))?)
}

/// The line of a value, for a candidate's process to read.
///
/// Raises:
///     ValueError: It is not plain data.
#[pyfunction]
pub fn _encode_value(py: Python<'_>, value: Value) -> String {
    py.detach(|| value.to_json())
}
