//! [`Task`] for Python, and the iterator over the tasks of a file.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use pyo3::exceptions::PyValueError;
use pyo3::inspect::PyStaticExpr;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyMapping, PyString, PyTuple};
use pyo3::{type_hint_identifier, type_hint_subscript, type_hint_union};

use super::convert::{NewArgs, Text, with_text};
use super::enums::wrong_type;
use super::history::lock;
use super::repr::quoted;
use crate::runner::value::Value;
use crate::task::{Case, Files, Format, Kind, Program, Reader, Source, Task};

const TEXT: PyStaticExpr = type_hint_identifier!("builtins", "str");
const TEXTS: PyStaticExpr = type_hint_subscript!(type_hint_identifier!("builtins", "dict"), TEXT, TEXT);
const PROGRAM: PyStaticExpr = type_hint_union!(TEXT, TEXTS);

impl<'a, 'py> FromPyObject<'a, 'py> for Program {
    type Error = PyErr;
    const INPUT_TYPE: PyStaticExpr = type_hint_union!(
        TEXT,
        type_hint_subscript!(type_hint_identifier!("collections.abc", "Mapping"), TEXT, TEXT)
    );

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if object.is_instance_of::<PyString>() {
            return with_text("candidate", &object, |code| Self::Code(code.into()));
        }
        Ok(Self::Files(files_of("candidate", &object)?))
    }
}

/// A fresh dict, or the text: nobody can change the task through it.
impl<'py> IntoPyObject<'py> for &Program {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;
    const OUTPUT_TYPE: PyStaticExpr = PROGRAM;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        match self {
            Program::Code(code) => Ok(PyString::new(py, code).into_any()),
            Program::Files(files) => Ok(Texts(files).into_pyobject(py)?.into_any()),
        }
    }
}

/// `dict[str, str]`.
pub struct Texts<'a>(&'a Files);

impl<'py> IntoPyObject<'py> for Texts<'_> {
    type Target = PyDict;
    type Output = Bound<'py, PyDict>;
    type Error = PyErr;
    const OUTPUT_TYPE: PyStaticExpr = TEXTS;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        let texts = PyDict::new(py);
        self.0.iter().try_for_each(|(path, text)| texts.set_item(&**path, &**text))?;
        Ok(texts)
    }
}

/// `dict[str, str | dict[str, str]]`.
pub struct Programs<'a>(&'a [(Arc<str>, Program)]);

impl<'py> IntoPyObject<'py> for Programs<'_> {
    type Target = PyDict;
    type Output = Bound<'py, PyDict>;
    type Error = PyErr;
    const OUTPUT_TYPE: PyStaticExpr =
        type_hint_subscript!(type_hint_identifier!("builtins", "dict"), TEXT, PROGRAM);

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        let programs = PyDict::new(py);
        self.0.iter().try_for_each(|(name, program)| programs.set_item(&**name, program))?;
        Ok(programs)
    }
}

/// `tuple[dict[str, Any], ...]`.
pub struct Cases<'a>(&'a [Case]);

impl<'py> IntoPyObject<'py> for Cases<'_> {
    type Target = PyTuple;
    type Output = Bound<'py, PyTuple>;
    type Error = PyErr;
    const OUTPUT_TYPE: PyStaticExpr = type_hint_subscript!(
        type_hint_identifier!("builtins", "tuple"),
        type_hint_subscript!(
            type_hint_identifier!("builtins", "dict"),
            TEXT,
            type_hint_identifier!("typing", "Any")
        ),
        PyStaticExpr::Constant { value: pyo3::inspect::PyStaticConstant::Ellipsis }
    );

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        let case = |case: &Case| -> PyResult<Bound<'py, PyDict>> {
            let fields = PyDict::new(py);
            match case {
                Case::Stdio { input, output } => {
                    fields.set_item("input", &**input)?;
                    fields.set_item("output", &**output)?;
                }
                Case::Function { args, kwargs, expected } => {
                    let named = PyDict::new(py);
                    kwargs.iter().try_for_each(|(name, value)| named.set_item(name, value))?;
                    fields.set_item("args", args.iter().collect::<Vec<_>>())?;
                    fields.set_item("kwargs", named)?;
                    fields.set_item("expected", &**expected)?;
                }
            }
            Ok(fields)
        };
        PyTuple::new(py, self.0.iter().map(case).collect::<PyResult<Vec<_>>>()?)
    }
}

fn shared(text: &str) -> Arc<str> {
    text.into()
}

fn files_of(argument: &str, object: &Bound<'_, PyAny>) -> PyResult<Files> {
    let takes = "a mapping of paths to texts";
    let mapping = object.cast::<PyMapping>().map_err(|_| wrong_type(argument, takes, object))?;
    let mut files = Vec::new();
    for item in mapping.items()? {
        let (path, text): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
        let path: Arc<str> = with_text(&format!("{argument}: a path"), &path, shared)?;
        files.push((path, with_text(&format!("{argument}: a text"), &text, shared)?));
    }
    Ok(files.into())
}

fn cases_of(kind: Kind, cases: &Bound<'_, PyAny>) -> PyResult<Arc<[Case]>> {
    let case = |(index, case): (usize, PyResult<Bound<'_, PyAny>>)| {
        let case = case?;
        let name = format!("cases[{index}]");
        let fields = case.cast::<PyMapping>().map_err(|_| wrong_type(&name, "a mapping", &case))?;
        let get = |key: &str| match fields.contains(key)? {
            true => fields.get_item(key).map(Some),
            false => Ok(None),
        };
        let need = |key: &str| get(key)?.ok_or_else(|| PyValueError::new_err(format!("{name}: no {key:?}")));
        if kind != Kind::Function {
            let text = |key: &str| with_text(&format!("{name}[{key:?}]"), &need(key)?, shared);
            return Ok(Case::Stdio { input: text("input")?, output: text("output")? });
        }
        let args: Vec<Value> = match get("args")? {
            Some(args) => args.try_iter()?.map(|arg| arg?.extract()).collect::<PyResult<_>>()?,
            None => Vec::new(),
        };
        let kwargs: Option<Vec<(String, Value)>> =
            get("kwargs")?.map(|kwargs| kwargs.cast::<PyMapping>()?.items()?.extract()).transpose()?;
        Ok(Case::Function {
            args: args.into(),
            kwargs: kwargs.unwrap_or_default().into(),
            expected: Arc::new(need("expected")?.extract()?),
        })
    };
    cases.try_iter()?.enumerate().map(case).collect()
}

#[pymethods]
impl Task {
    #[new]
    #[pyo3(signature = (id, prompt=Text::EMPTY, *, kind, module=None, entry_point=None,
                        tests: "Mapping[str, str] | None"=None,
                        cases: "Iterable[Mapping[str, Any]] | None"=None, compare=None, tolerance=None,
                        time_limit_s=None, memory_limit_bytes=None, reference=None, stub=None,
                        variants: "Mapping[str, str | Mapping[str, str]] | None"=None,
                        source: "tuple[str | PathLike[str], int | None] | None"=None))]
    #[allow(clippy::too_many_arguments, reason = "its arguments are Python's, by keyword")]
    fn py_new(
        id: Text,
        prompt: Text,
        kind: &str,
        module: Option<&str>,
        entry_point: Option<&str>,
        tests: Option<&Bound<'_, PyAny>>,
        cases: Option<&Bound<'_, PyAny>>,
        compare: Option<&str>,
        tolerance: Option<f64>,
        time_limit_s: Option<f64>,
        memory_limit_bytes: Option<i64>,
        reference: Option<Program>,
        stub: Option<Program>,
        variants: Option<&Bound<'_, PyAny>>,
        source: Option<(PathBuf, Option<usize>)>,
    ) -> PyResult<Self> {
        let mut task = Self::new(&id.0, Kind::parse(kind)?);
        task.prompt = prompt.0.into();
        task.module = module.map(shared);
        task.entry_point = entry_point.map(shared);
        task.tests = tests.map(|tests| files_of("tests", tests)).transpose()?.unwrap_or(task.tests);
        task.cases = cases.map(|cases| cases_of(task.kind, cases)).transpose()?.unwrap_or(task.cases);
        task.compare = compare.map(shared);
        (task.tolerance, task.time_limit_s) = (tolerance, time_limit_s);
        task.memory_limit_bytes = memory_limit_bytes.map(|bytes| u64::try_from(bytes).unwrap_or(0));
        (task.reference, task.stub) = (reference, stub);
        if let Some(variants) = variants {
            let takes = "a mapping of names to candidates";
            let pairs = variants.cast::<PyMapping>().map_err(|_| wrong_type("variants", takes, variants))?;
            let pairs: Vec<(String, Program)> = pairs.items()?.extract()?;
            task.variants = pairs.into_iter().map(|(name, program)| (name.into(), program)).collect();
        }
        task.source = source.map(|(path, line)| Source { path, line });
        Ok(task.checked()?)
    }

    /// Its name.
    #[getter(id)]
    fn py_id(&self) -> &str {
        &self.id
    }

    /// What to write.
    #[getter(prompt)]
    fn py_prompt(&self) -> &str {
        &self.prompt
    }

    /// "pytest", "stdio", "function" or "command".
    #[getter(kind)]
    fn py_kind(&self) -> &'static str {
        self.kind.as_str()
    }

    /// The module that a candidate becomes; None unless the kind is "pytest".
    #[getter(module)]
    fn py_module(&self) -> Option<&str> {
        self.module.as_deref()
    }

    /// The function that a candidate must have.
    #[getter(entry_point)]
    fn py_entry_point(&self) -> Option<&str> {
        self.entry_point.as_deref()
    }

    /// Paths to texts, a fresh dict each time.
    #[getter(tests)]
    fn py_tests(&self) -> Texts<'_> {
        Texts(&self.tests)
    }

    /// Inputs and outputs, or calls and results; fresh dicts each time.
    #[getter(cases)]
    fn py_cases(&self) -> Cases<'_> {
        Cases(&self.cases)
    }

    /// When outputs are the same; None leaves it to the runner.
    #[getter(compare)]
    fn py_compare(&self) -> Option<&str> {
        self.compare.as_deref()
    }

    /// Of numbers.
    #[getter(tolerance)]
    fn py_tolerance(&self) -> Option<f64> {
        self.tolerance
    }

    /// Wall time of one test or case in seconds.
    #[getter(time_limit_s)]
    fn py_time_limit_s(&self) -> Option<f64> {
        self.time_limit_s
    }

    /// Memory.
    #[getter(memory_limit_bytes)]
    fn py_memory_limit_bytes(&self) -> Option<u64> {
        self.memory_limit_bytes
    }

    /// A candidate that passes.
    #[getter(reference)]
    fn py_reference(&self) -> Option<&Program> {
        self.reference.as_ref()
    }

    /// What a learner starts from.
    #[getter(stub)]
    fn py_stub(&self) -> Option<&Program> {
        self.stub.as_ref()
    }

    /// Candidates by name, a fresh dict each time.
    #[getter(variants)]
    fn py_variants(&self) -> Programs<'_> {
        Programs(&self.variants)
    }

    /// The file or folder it was read from, and the line from 1 (None for a folder).
    #[getter(source)]
    fn py_source(&self) -> Option<(String, Option<usize>)> {
        self.source.as_ref().map(|source| (source.path.to_string_lossy().into_owned(), source.line))
    }

    /// The candidate in a model's completion.
    ///
    /// Thinking, prose and markdown fences are cut. Where the prompt is the beginning of a program
    /// (HumanEval), the completion may go on from it or be the whole program; a whole program still gets what
    /// the prompt has above the function: imports and functions beside it.
    ///
    /// Args:
    ///     completion: What the model answered.
    ///
    /// Returns:
    ///     The module's code; for a task of kind "command" the one file that has to be written.
    ///
    /// Raises:
    ///     ValueError: A task of kind "command" whose candidate is several files.
    ///
    /// Example:
    ///     >>> task = Task("add", "def add(a, b):\n", kind="pytest", entry_point="add",
    ///     ...             tests={"test_add.py": "from solution import add\ndef test(): assert add(1, 2) == 3"})
    ///     >>> print(task.candidate("    return a + b"))
    ///     def add(a, b):
    ///         return a + b
    #[pyo3(signature = (completion))]
    fn candidate<'py>(slf: &Bound<'py, Self>, completion: &str) -> PyResult<ProgramOut<'py>> {
        slf.py().import("testgrad.tasks")?.call_method1("_candidate", (slf, completion)).map(ProgramOut)
    }

    /// What judges candidates of this task: `PytestRunner`, `StdioRunner` or `FunctionRunner`.
    ///
    /// Args:
    ///     options: For the runner; they win over what the task says.
    ///
    /// Raises:
    ///     ValueError: A task of kind "command", or one whose outputs need a `checker`.
    #[pyo3(signature = (**options: "Any"))]
    fn runner<'py>(slf: &Bound<'py, Self>, options: Option<&Bound<'py, PyDict>>) -> PyResult<AnyOut<'py>> {
        let options = options.cloned().unwrap_or_else(|| PyDict::new(slf.py()));
        slf.py().import("testgrad.tasks")?.call_method1("_runner", (slf, options)).map(AnyOut)
    }

    /// The task as JSON on one line, as `testgrad.tasks.write` writes it; `from_json` reads it back.
    #[pyo3(name = "to_json")]
    fn py_to_json(&self, py: Python<'_>) -> String {
        py.detach(|| self.to_json())
    }

    /// The task that `to_json` wrote.
    ///
    /// Raises:
    ///     ValueError: The text is no such JSON.
    #[staticmethod]
    #[pyo3(name = "from_json", signature = (text: "str | bytes"))]
    fn py_from_json(text: &Bound<'_, PyAny>) -> PyResult<Self> {
        let read = |text: &str| {
            Self::from_json(text).map_err(|problem| PyValueError::new_err(format!("Task json: {problem}")))
        };
        match text.cast::<PyBytes>() {
            Ok(bytes) => read(
                str::from_utf8(bytes.as_bytes())
                    .map_err(|error| PyValueError::new_err(format!("Task json is not UTF-8: {error}")))?,
            ),
            Err(_) => with_text("text", text, read)?,
        }
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let count = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
        let judged_by = match self.kind {
            Kind::Pytest | Kind::Command => count(self.tests.len(), "file"),
            Kind::Stdio | Kind::Function => count(self.cases.len(), "case"),
        };
        format!("<Task {}: {}, {judged_by}>", quoted(py, &self.id), self.kind.as_str())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<NewArgs<'py>> {
        let kwargs = PyDict::new(py);
        kwargs.set_item("id", &*self.id)?;
        kwargs.set_item("prompt", &*self.prompt)?;
        kwargs.set_item("kind", self.py_kind())?;
        kwargs.set_item("module", self.py_module())?;
        kwargs.set_item("entry_point", self.py_entry_point())?;
        kwargs.set_item("tests", self.py_tests())?;
        kwargs.set_item("cases", self.py_cases())?;
        kwargs.set_item("compare", self.py_compare())?;
        kwargs.set_item("tolerance", self.tolerance)?;
        kwargs.set_item("time_limit_s", self.time_limit_s)?;
        kwargs.set_item("memory_limit_bytes", self.memory_limit_bytes)?;
        kwargs.set_item("reference", self.py_reference())?;
        kwargs.set_item("stub", self.py_stub())?;
        kwargs.set_item("variants", self.py_variants())?;
        kwargs.set_item("source", self.py_source())?;
        Ok(NewArgs(py.get_type::<Self>(), kwargs))
    }

    /// For `match`.
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str) {
        ("id", "prompt")
    }
}

macro_rules! made_in_python {
    ($(#[$doc:meta])* $name:ident, $hint:expr) => {
        $(#[$doc])*
        pub struct $name<'py>(Bound<'py, PyAny>);

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

made_in_python!(
    /// A candidate.
    ProgramOut,
    PROGRAM
);
made_in_python!(
    /// A runner of whatever class.
    AnyOut,
    type_hint_identifier!("typing", "Any")
);

/// The tasks of a file or folder; after an error of one task the next can be asked for.
#[pyclass(frozen, module = "testgrad")]
pub struct _TaskReader {
    reader: Mutex<Reader>,
}

#[pymethods]
impl _TaskReader {
    #[new]
    #[pyo3(signature = (path, format=None))]
    fn py_new(py: Python<'_>, path: PathBuf, format: Option<&str>) -> PyResult<Self> {
        let format = format.map(Format::parse).transpose()?;
        let reader = py.detach(|| Reader::open(&path, format))?;
        Ok(Self { reader: Mutex::new(reader) })
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Task>> {
        Ok(py.detach(|| lock(&self.reader).next()).transpose()?)
    }
}
