//! The only conversions: newtypes that carry the type hints pyo3 lacks. Elsewhere no numpy in Rust.

use numpy::{PyArray1, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::PyTypeInfo;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::inspect::{PyStaticConstant, PyStaticExpr};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple, PyType};
use pyo3::{type_hint_identifier, type_hint_subscript};
use serde::{Deserialize, Serialize};

use super::enums::wrong_type;
use super::history::History;
use crate::feedback::FeedbackEntry;
use crate::outcome;

const ELLIPSIS: PyStaticExpr = PyStaticExpr::Constant { value: PyStaticConstant::Ellipsis };

/// `tuple[T, ...]`.
pub struct Tuple<T>(pub Vec<T>);

impl<'py, T: IntoPyObject<'py>> IntoPyObject<'py> for Tuple<T> {
    type Target = PyTuple;
    type Output = Bound<'py, PyTuple>;
    type Error = PyErr;
    const OUTPUT_TYPE: PyStaticExpr =
        type_hint_subscript!(type_hint_identifier!("builtins", "tuple"), T::OUTPUT_TYPE, ELLIPSIS);

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        PyTuple::new(py, self.0)
    }
}

/// `Iterator[T]` over values that are there already.
pub struct Iter<T>(pub Vec<T>);

impl<'py, T: IntoPyObject<'py>> IntoPyObject<'py> for Iter<T> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;
    const OUTPUT_TYPE: PyStaticExpr =
        type_hint_subscript!(type_hint_identifier!("collections.abc", "Iterator"), T::OUTPUT_TYPE);

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        Ok(PyTuple::new(py, self.0)?.try_iter()?.into_any())
    }
}

/// Text of any kind: what cannot be UTF-8 (a lone surrogate from a test's output) is escaped, not refused.
pub struct Text(pub String);

impl Text {
    /// No text.
    pub const EMPTY: Self = Self(String::new());

    /// This text.
    pub fn named(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Text {
    type Error = PyErr;
    const INPUT_TYPE: PyStaticExpr = type_hint_identifier!("builtins", "str");

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        with_text("text", &object, |text| Self(text.to_owned()))
    }
}

/// Calls `f` with a Python string's text, borrowed where that is possible.
pub fn with_text<R>(argument: &str, object: &Bound<'_, PyAny>, f: impl FnOnce(&str) -> R) -> PyResult<R> {
    let string = object.cast::<PyString>().map_err(|_| wrong_type(argument, "str", object))?;
    if let Ok(text) = string.to_str() {
        return Ok(f(text));
    }
    let escaped = string.call_method1("encode", ("utf-8", "backslashreplace"))?;
    Ok(f(&String::from_utf8_lossy(escaped.cast::<PyBytes>()?.as_bytes())))
}

/// A float64 array to read: `ArrayLike` in, C order.
pub struct FloatsIn<'py>(PyReadonlyArrayDyn<'py, f64>);

/// A uint8 array to read: whole numbers from 0 to 255 in, C order.
pub struct CodesIn<'py>(PyReadonlyArrayDyn<'py, u8>);

const ARRAY_LIKE: PyStaticExpr = type_hint_identifier!("numpy.typing", "ArrayLike");

impl<'a, 'py> FromPyObject<'a, 'py> for FloatsIn<'py> {
    type Error = PyErr;
    const INPUT_TYPE: PyStaticExpr = ARRAY_LIKE;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(array) = object.extract::<PyReadonlyArrayDyn<'py, f64>>()
            && array.is_c_contiguous()
        {
            return Ok(Self(array));
        }
        let array = object.py().import("numpy")?.call_method1("asarray", (object,))?;
        if array.getattr("dtype")?.getattr("kind")?.eq("c")? {
            return Err(PyTypeError::new_err("an array of complex numbers where real ones belong"));
        }
        Ok(Self(contiguous(&array, "float64")?.extract()?))
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for CodesIn<'py> {
    type Error = PyErr;
    const INPUT_TYPE: PyStaticExpr = ARRAY_LIKE;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(array) = object.extract::<PyReadonlyArrayDyn<'py, u8>>() {
            if array.is_c_contiguous() {
                return Ok(Self(array));
            }
            return Ok(Self(contiguous(&object, "uint8")?.extract()?));
        }
        let numpy = object.py().import("numpy")?;
        let array = numpy.call_method1("asarray", (object,))?;
        let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
        let empty = array.getattr("size")?.extract::<usize>()? == 0;
        let fits = || -> PyResult<bool> {
            let low: i128 = array.call_method0("min")?.call_method0("item")?.extract()?;
            let high: i128 = array.call_method0("max")?.call_method0("item")?.extract()?;
            Ok(low >= 0 && high <= 255)
        };
        if !(empty || matches!(&*kind, "i" | "u") && fits()?) {
            return Err(PyValueError::new_err(
                "status and severity codes must be whole numbers from 0 to 255 (dtype uint8)",
            ));
        }
        Ok(Self(contiguous(&array, "uint8")?.extract()?))
    }
}

fn contiguous<'py>(object: &Bound<'py, PyAny>, dtype: &str) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    let order = PyDict::new(py);
    order.set_item("dtype", dtype)?;
    order.set_item("order", "C")?;
    py.import("numpy")?.call_method("asarray", (object,), Some(&order))
}

impl FloatsIn<'_> {
    /// The numbers, row by row.
    pub fn values(&self) -> PyResult<&[f64]> {
        Ok(self.0.as_slice()?)
    }

    /// The array's shape.
    pub fn shape(&self) -> &[usize] {
        self.0.shape()
    }
}

impl CodesIn<'_> {
    /// The codes, row by row.
    pub fn values(&self) -> PyResult<&[u8]> {
        Ok(self.0.as_slice()?)
    }

    /// The array's shape.
    pub fn shape(&self) -> &[usize] {
        self.0.shape()
    }
}

/// A float64 array to give away: one column (shape `(n,)`) or several (shape `(n, columns)`).
pub struct FloatsOut {
    values: Vec<f64>,
    columns: Option<usize>,
}

impl FloatsOut {
    /// Shape `(n,)`.
    pub fn flat(values: Vec<f64>) -> Self {
        Self { values, columns: None }
    }

    /// Shape `(n / columns, columns)`.
    pub fn rows(values: Vec<f64>, columns: usize) -> Self {
        Self { values, columns: Some(columns) }
    }
}

impl<'py> IntoPyObject<'py> for FloatsOut {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;
    const OUTPUT_TYPE: PyStaticExpr = type_hint_subscript!(
        type_hint_identifier!("numpy.typing", "NDArray"),
        type_hint_identifier!("numpy", "float64")
    );

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        let rows = self.columns.map(|columns| self.values.len().checked_div(columns).unwrap_or(0));
        let flat = PyArray1::from_vec(py, self.values);
        match (rows, self.columns) {
            (Some(rows), Some(columns)) => Ok(flat.reshape([rows, columns])?.into_any()),
            _ => Ok(flat.into_any()),
        }
    }
}

macro_rules! hinted {
    ($(#[$doc:meta])* $name:ident, $hint:expr) => {
        $(#[$doc])*
        pub struct $name<'py>(pub Bound<'py, PyAny>);

        impl<'a, 'py> FromPyObject<'a, 'py> for $name<'py> {
            type Error = PyErr;
            const INPUT_TYPE: PyStaticExpr = $hint;

            fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
                Ok(Self(object.to_owned()))
            }
        }

        impl<'py> IntoPyObject<'py> for $name<'py> {
            type Target = PyAny;
            type Output = Bound<'py, PyAny>;
            type Error = PyErr;
            const OUTPUT_TYPE: PyStaticExpr = $hint;

            fn into_pyobject(self, _: Python<'py>) -> PyResult<Self::Output> {
                Ok(self.0)
            }
        }
    };
}

hinted!(
    /// A `History` or any iterable of entries.
    Entries,
    type_hint_subscript!(
        type_hint_identifier!("collections.abc", "Iterable"),
        <FeedbackEntry as PyTypeInfo>::TYPE_HINT
    )
);
hinted!(
    /// Strategy name to totals.
    Totals,
    type_hint_subscript!(
        type_hint_identifier!("collections.abc", "Mapping"),
        type_hint_identifier!("builtins", "str"),
        ARRAY_LIKE
    )
);
hinted!(
    /// What `arun` gives back to await.
    Awaiting,
    type_hint_subscript!(
        type_hint_identifier!("collections.abc", "Coroutine"),
        ANY,
        ANY,
        <History as PyTypeInfo>::TYPE_HINT
    )
);

/// How a value is pickled: its class, called with the same arguments by place.
pub type Again<'py, T> = (Bound<'py, PyType>, T);

/// How a value is pickled: its class, called with the same arguments, all by keyword.
pub struct NewArgs<'py>(pub Bound<'py, PyType>, pub Bound<'py, PyDict>);

impl<'py> IntoPyObject<'py> for NewArgs<'py> {
    type Target = PyTuple;
    type Output = Bound<'py, PyTuple>;
    type Error = PyErr;
    const OUTPUT_TYPE: PyStaticExpr =
        type_hint_subscript!(type_hint_identifier!("builtins", "tuple"), ANY, ELLIPSIS);

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        let again = py.import("copyreg")?.getattr("__newobj_ex__")?;
        let arguments = (self.0, PyTuple::empty(py), self.1).into_pyobject(py)?;
        (again, arguments).into_pyobject(py)
    }
}

/// The JSON of a value.
pub fn to_json<T: Serialize>(value: &T) -> PyResult<String> {
    serde_json::to_string(value).map_err(|e| PyValueError::new_err(e.to_string()))
}

/// A value from its JSON, given as str or UTF-8 bytes.
pub fn from_json<T: for<'de> Deserialize<'de>>(what: &'static str, text: &Bound<'_, PyAny>) -> PyResult<T> {
    if let Ok(bytes) = text.cast::<PyBytes>() {
        let text = std::str::from_utf8(bytes.as_bytes())
            .map_err(|e| PyValueError::new_err(format!("{what} json is not UTF-8: {e}")))?;
        return Ok(outcome::from_json(what, text)?);
    }
    with_text("text", text, |text| outcome::from_json(what, text))?.map_err(PyErr::from)
}

macro_rules! callable {
    ($(#[$doc:meta])* $name:ident, $argument:literal, $returns:expr) => {
        $(#[$doc])*
        pub struct $name(pub Py<PyAny>);

        impl<'a, 'py> FromPyObject<'a, 'py> for $name {
            type Error = PyErr;
            const INPUT_TYPE: PyStaticExpr = type_hint_subscript!(
                type_hint_identifier!("collections.abc", "Callable"),
                ELLIPSIS,
                $returns
            );

            fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
                match object.is_callable() {
                    true => Ok(Self(object.to_owned().unbind())),
                    false => Err(wrong_type($argument, "callable", &object)),
                }
            }
        }

        impl<'py> IntoPyObject<'py> for $name {
            type Target = PyAny;
            type Output = Bound<'py, PyAny>;
            type Error = PyErr;
            const OUTPUT_TYPE: PyStaticExpr = type_hint_subscript!(
                type_hint_identifier!("collections.abc", "Callable"),
                ELLIPSIS,
                $returns
            );

            fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
                Ok(self.0.into_bound(py))
            }
        }
    };
}

const ANY: PyStaticExpr = type_hint_identifier!("typing", "Any");

callable!(
    /// `agent_fn(history, task) -> str`, plain or async.
    AgentFn, "agent_fn", ANY
);
callable!(
    /// `test_runner(code) -> SuiteResult`, plain or async.
    TestRunner, "test_runner", ANY
);
callable!(
    /// `on_iteration(entry)`.
    OnIteration, "on_iteration", type_hint_identifier!("builtins", "object")
);
callable!(
    /// `stop_when(history) -> bool`.
    StopWhen, "stop_when", type_hint_identifier!("builtins", "bool")
);
callable!(
    /// `strategy(suite, previous) -> RewardSignal`.
    StrategyFn, "strategy", ANY
);
