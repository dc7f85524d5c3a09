//! From a path to tasks: finds the format of each row, and says where a task came from.

use std::path::{Path, PathBuf};

use super::fields::Row;
use super::rows::Rows;
use super::{Error, Problem, Source, Task, apps, exercism, humaneval, mbpp, own, suites};
use crate::outcome;
use crate::runner::value::Value;

/// What tasks look like in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// testgrad's own lines.
    Testgrad,
    /// HumanEval.
    HumanEval,
    /// MBPP.
    Mbpp,
    /// Inputs and outputs, as in APPS, TACO, PRIME, verl, DeepCoder, LiveCodeBench.
    Apps,
    /// Folders of Exercism's tracks.
    Exercism,
    /// Files and variants, or cases and solutions.
    Suites,
}

impl Format {
    /// All formats, in the order in which a row is tried.
    pub const ALL: [Self; 6] =
        [Self::Testgrad, Self::HumanEval, Self::Mbpp, Self::Apps, Self::Exercism, Self::Suites];
    /// Their words.
    pub const WORDS: &str = "testgrad, humaneval, mbpp, apps, exercism, suites";

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Testgrad => "testgrad",
            Self::HumanEval => "humaneval",
            Self::Mbpp => "mbpp",
            Self::Apps => "apps",
            Self::Exercism => "exercism",
            Self::Suites => "suites",
        }
    }

    /// The format of this word.
    pub fn parse(word: &str) -> Result<Self, outcome::Error> {
        Self::ALL.into_iter().find(|format| format.as_str() == word).ok_or_else(|| {
            outcome::Error::UnknownWord { argument: "format", allowed: Self::WORDS, got: word.to_owned() }
        })
    }

    /// The format of a row.
    fn of(row: Row<'_>) -> Option<Self> {
        Some(match row {
            row if own::is_one(row) => Self::Testgrad,
            row if suites::is_one(row) => Self::Suites,
            row if humaneval::is_one(row) => Self::HumanEval,
            row if mbpp::is_one(row) => Self::Mbpp,
            row if apps::is_one(row) => Self::Apps,
            _ => return None,
        })
    }
}

/// The tasks of a file or folder, one after the other.
///
/// After an error of one row the next row can be asked for.
pub struct Reader {
    path: PathBuf,
    places: Places,
    forced: Option<Format>,
    /// The format of the rows so far: what a row is meant to be that has lost a key.
    usual: Option<Format>,
}

enum Places {
    Rows(Rows),
    Folders(std::vec::IntoIter<PathBuf>),
}

impl Reader {
    /// The tasks at a path; a format keeps it from being found by content.
    pub fn open(path: &Path, format: Option<Format>) -> Result<Self, Error> {
        let fail = |problem: Problem| problem.at(path, None, format);
        let about = std::fs::metadata(path).map_err(|error| fail(error.into()))?;
        let places = match (about.is_dir(), format) {
            (true, None | Some(Format::Exercism)) => {
                Places::Folders(exercism::folders(path).map_err(fail)?.into_iter())
            }
            (true, Some(_)) => {
                return Err(fail(std::io::Error::from_raw_os_error(libc::EISDIR).into()));
            }
            (false, Some(Format::Exercism)) => {
                return Err(fail(std::io::Error::from_raw_os_error(libc::ENOTDIR).into()));
            }
            (false, _) => Places::Rows(Rows::open(path).map_err(|error| fail(error.into()))?),
        };
        Ok(Self { path: path.to_owned(), places, forced: format, usual: format })
    }

    /// The tasks of bytes; `path` is only their name.
    pub fn of_bytes(path: &Path, bytes: Vec<u8>, format: Option<Format>) -> Result<Self, Error> {
        let rows = Rows::of(Box::new(std::io::Cursor::new(bytes)))
            .map_err(|error| Problem::from(error).at(path, None, format))?;
        Ok(Self { path: path.to_owned(), places: Places::Rows(rows), forced: format, usual: format })
    }

    fn task_of(&mut self, bytes: &[u8], line: usize) -> Result<Task, Problem> {
        let value = Value::parse_plain(bytes).map_err(Problem::Json)?;
        let unknown = |seen| Problem::UnknownFormat { seen };
        let row = Row::of(&value).ok_or_else(|| unknown(format!("a {}", value.type_name())))?;
        let format =
            self.forced.or_else(|| Format::of(row)).or(self.usual).ok_or_else(|| unknown(row.keys()))?;
        self.usual = Some(format);
        let mut task = match format {
            Format::Testgrad => own::read(row)?,
            Format::HumanEval => humaneval::read(row)?,
            Format::Mbpp => mbpp::read(row)?,
            Format::Apps => apps::read(row)?,
            Format::Suites => suites::read(row)?,
            Format::Exercism => return Err(unknown(row.keys())),
        };
        if task.id.is_empty() {
            let name = self.path.file_name().unwrap_or_default().to_string_lossy();
            let stem = name.split('.').next().unwrap_or_default();
            task.id = format!("{stem}/{line}").into();
        }
        if format != Format::Testgrad || !own::has_source(row) {
            task.source = Some(Source { path: self.path.clone(), line: Some(line) });
        }
        Ok(task.checked()?)
    }
}

impl Iterator for Reader {
    type Item = Result<Task, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.places {
            Places::Rows(rows) => {
                let (line, row) = rows.next()?;
                let task = row.and_then(|bytes| self.task_of(&bytes, line));
                Some(task.map_err(|problem| problem.at(&self.path, Some(line), self.usual)))
            }
            Places::Folders(folders) => {
                let folder = folders.next()?;
                let task = exercism::read(&folder).and_then(|task| Ok(task.checked()?));
                Some(task.map_err(|problem| problem.at(&folder, None, Some(Format::Exercism))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::task::{Case, Kind, Program};

    fn read(text: &str) -> Vec<Result<Task, String>> {
        let reader = Reader::of_bytes(Path::new("tasks.jsonl"), text.as_bytes().to_vec(), None).unwrap();
        reader.map(|task| task.map_err(|error| error.to_string())).collect()
    }

    fn one(text: &str) -> Task {
        let mut tasks = read(text);
        assert_eq!(tasks.len(), 1);
        tasks.remove(0).unwrap()
    }

    const HUMANEVAL: &str = r#"{"task_id": "H/0", "prompt": "def f(x):\n    \"\"\"Add one.\"\"\"\n", "entry_point": "f", "canonical_solution": "    return x + 1\n", "test": "def check(candidate):\n    assert candidate(1) == 2\n"}"#;
    const MBPP: &str = r#"{"task_id": 3, "text": "Add one.", "code": "def f(x):\r\n  return x + 1", "test_list": ["assert f(1) == 2", "assert f(2) == 3"], "test_setup_code": "", "challenge_test_list": ["assert f(9) == 10"]}"#;
    const SUITE: &str = r#"{"id": "s", "files": {"test_a.py": "import a"}, "variants": {"reference": {"a.py": "X = 1"}, "buggy": {"a.py": "X = 2"}}}"#;
    const STDIO: &str = r#"{"id": "p", "statement": "Echo.", "cases": [{"input": "1", "output": "1"}], "compare": "float", "tolerance": 1e-3, "time_limit_s": 2.0, "memory_limit_mb": 64, "solutions": {"reference": "print(input())"}}"#;
    const OWN: &str = r#"{"id": "o", "kind": "function", "entry_point": "f", "cases": [{"args": [1], "expected": {"$tuple": [2, {"a": null}]}}]}"#;
    const PAIRS: &str = r#"{"input_output": {"inputs": ["1"], "outputs": ["2"]}}"#;

    #[test]
    fn formats_are_told_by_content() {
        for (text, format) in [
            (HUMANEVAL, Format::HumanEval),
            (MBPP, Format::Mbpp),
            (SUITE, Format::Suites),
            (STDIO, Format::Suites),
            (OWN, Format::Testgrad),
            (PAIRS, Format::Apps),
        ] {
            let mut reader = Reader::of_bytes(Path::new("x"), text.as_bytes().to_vec(), None).unwrap();
            reader.next().unwrap().unwrap();
            assert_eq!(reader.usual, Some(format));
            assert_eq!(Format::parse(format.as_str()).unwrap(), format);
        }
    }

    #[test]
    fn the_beginning_and_the_solution_of_humaneval_are_a_program() {
        let task = one(HUMANEVAL);
        let code = "def f(x):\n    \"\"\"Add one.\"\"\"\n    return x + 1\n";
        assert_eq!(task.reference, Some(Program::Code(code.into())));
        assert_eq!((task.kind, task.module.as_deref()), (Kind::Pytest, Some("solution")));
        assert_eq!(task.tests[0].1.matches("def test_").count(), 1);
    }

    #[test]
    fn every_assert_of_mbpp_is_a_test() {
        let task = one(MBPP);
        assert_eq!((&*task.id, task.entry_point.as_deref()), ("3", Some("f")));
        assert_eq!(task.tests[0].1.matches("def test_").count(), 2);
        assert!(!task.tests[0].1.contains("f(9)"));
    }

    #[test]
    fn a_suite_keeps_all_its_variants() {
        let task = one(SUITE);
        assert_eq!(task.module.as_deref(), Some("a"));
        assert_eq!(task.stub, Some(Program::Code("X = 2".into())));
        assert_eq!(task.variants.len(), 2);
        let package = one(&SUITE.replace("a.py", "a/__init__.py").replace("test_a/__init__.py", "test_a.py"));
        assert_eq!(package.module.as_deref(), Some("a"));
        assert!(matches!(package.stub, Some(Program::Files(_))));
        let task = one(STDIO);
        assert_eq!((task.compare.as_deref(), task.tolerance), (Some("floats"), Some(1e-3)));
        assert_eq!(task.memory_limit_bytes, Some(64 << 20));
        assert!(matches!(&task.cases[0], Case::Stdio { input, .. } if &**input == "1"));
    }

    #[test]
    fn a_task_without_a_name_is_named_after_its_line() {
        let tasks = read(&format!("\n{PAIRS}\n[1]\n{PAIRS}"));
        assert_eq!(&*tasks[0].as_ref().unwrap().id, "tasks/2");
        assert_eq!(
            tasks[1],
            Err(format!("tasks.jsonl, line 3: no format that is known ({}): saw a list", Format::WORDS))
        );
        assert_eq!(&*tasks[2].as_ref().unwrap().id, "tasks/4");
    }

    #[test]
    fn a_row_that_lost_a_key_is_taken_for_what_the_others_are() {
        let broken = HUMANEVAL.replace("\"test\"", "\"tset\"").replace("\"canonical_solution\"", "\"x\"");
        let tasks = read(&format!("{HUMANEVAL}\n{broken}\n{{\"a\": \n{HUMANEVAL}\n"));
        assert_eq!(tasks[1], Err("tasks.jsonl, line 2: no \"test\"".to_owned()));
        assert_eq!(tasks[2], Err("tasks.jsonl, line 3: broken JSON, byte 7: expected a value".to_owned()));
        assert_eq!(tasks[3].as_ref().unwrap().source.as_ref().unwrap().line, Some(4));
    }

    #[test]
    fn what_is_in_no_format_says_what_was_seen() {
        let said = read(r#"{"name": 1, "age": 2}"#).remove(0).unwrap_err();
        assert!(said.ends_with("saw an object with 'name', 'age'"), "{said}");
        let said = read("hello\n").remove(0).unwrap_err();
        assert_eq!(said, "tasks.jsonl, line 1: broken JSON, byte 0: expected a value");
        assert!(read("").is_empty() && read(" \n[ ]").is_empty());
    }

    #[test]
    fn an_array_is_read_item_by_item() {
        let tasks = read(&format!("[\n{MBPP},\n{MBPP}\n]\n"));
        assert_eq!(tasks[1].as_ref().unwrap().source.as_ref().unwrap().line, Some(3));
    }

    #[test]
    fn own_lines_are_lossless() {
        for text in [HUMANEVAL, MBPP, SUITE, STDIO, OWN, PAIRS] {
            let task = one(text);
            let line = task.to_json();
            assert!(!line.contains('\n'));
            assert_eq!(Task::from_json(&line).unwrap(), task);
            assert_eq!(one(&line), task);
        }
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        for (text, problem) in [
            (
                r#"{"id": "a", "kind": "pytest"}"#,
                "tests: at least one file is needed in a task of kind pytest",
            ),
            (r#"{"id": "a", "kind": "stdio", "cases": [{"input": "1"}]}"#, "\"cases[0]\": no \"output\""),
            (
                r#"{"id": "a", "kind": "function", "cases": [{"expected": 1}]}"#,
                "entry_point: a function is needed in a task of kind function",
            ),
            (
                r#"{"id": "a", "kind": "stdio", "compare": "x", "cases": [{"input": "", "output": ""}]}"#,
                "compare must be one of exact, trimmed, tokens, floats, unordered, checker, got \"x\"",
            ),
        ] {
            assert_eq!(read(text).remove(0).unwrap_err(), format!("tasks.jsonl, line 1: {problem}"));
        }
    }

    #[test]
    fn no_beginning_of_a_file_is_too_short_to_read() {
        for text in [HUMANEVAL, MBPP, SUITE, STDIO, OWN, PAIRS] {
            let array = format!("[{text},\n{text}]");
            for end in 0..array.len() {
                let bytes = array.as_bytes()[..end].to_vec();
                Reader::of_bytes(Path::new("x"), bytes, None).unwrap().for_each(drop);
                let bytes = text.as_bytes()[..end.min(text.len())].to_vec();
                Reader::of_bytes(Path::new("x"), bytes, None).unwrap().for_each(drop);
            }
        }
    }

    /// JSON made of what the formats look for.
    fn json() -> impl Strategy<Value = String> {
        let keys = [
            "id",
            "kind",
            "files",
            "variants",
            "cases",
            "solutions",
            "test",
            "entry_point",
            "test_list",
            "task_id",
            "prompt",
            "inputs",
            "outputs",
            "fn_name",
            "input",
            "output",
            "tests",
            "metadata",
            "code",
            "reference",
            "private_test_cases",
            "testtype",
            "$tuple",
            "args",
            "expected",
            "source",
            "compare",
        ];
        let words =
            ["pytest", "function", "stdio", "[1]", "{\\\"inputs\\\": [], \\\"outputs\\\": []}", "f", ""];
        let leaf = prop_oneof![
            Just("null".to_owned()),
            any::<i64>().prop_map(|n| n.to_string()),
            proptest::sample::select(words.to_vec()).prop_map(|word| format!("\"{word}\"")),
        ];
        leaf.prop_recursive(4, 40, 6, move |inner| {
            let pair = (proptest::sample::select(keys.to_vec()), inner.clone());
            prop_oneof![
                proptest::collection::vec(inner, 0..4).prop_map(|items| format!("[{}]", items.join(","))),
                proptest::collection::vec(pair, 0..9).prop_map(|pairs| {
                    let pairs: Vec<_> =
                        pairs.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
                    format!("{{{}}}", pairs.join(","))
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_bytes_stop_the_reader(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            Reader::of_bytes(Path::new("x"), bytes, None).unwrap().for_each(drop);
        }

        #[test]
        fn no_json_stops_any_format(text in json()) {
            for format in [None, Some(Format::Testgrad), Some(Format::HumanEval), Some(Format::Mbpp),
                           Some(Format::Apps), Some(Format::Suites)] {
                let bytes = text.as_bytes().to_vec();
                for task in Reader::of_bytes(Path::new("x"), bytes, format).unwrap().flatten() {
                    prop_assert_eq!(&Task::from_json(&task.to_json()).unwrap(), &task);
                }
            }
        }
    }
}
