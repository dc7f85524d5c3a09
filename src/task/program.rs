//! Python text: what a module defines, and test files that see the names of a candidate's module.

use std::fmt::Write;

/// How a test file gets the candidate's names, as if the module stood in it.
///
/// Names of the tests themselves come first. It is done when a test runs and not when the file is imported:
/// pytest would collect whatever in the module is called like a test.
const BRING_IN: &str = "    for _name in dir(_solution):
        if not _name.startswith(\"__\"):
            globals().setdefault(_name, getattr(_solution, _name))
";

/// One test that calls `check` of a test text, which is kept to the letter.
///
/// A call of `check` that the text ends with is left out, so that there is one.
pub(super) fn check_file(test: &str, module: &str, entry_point: &str) -> String {
    let own_call = format!("check({entry_point})");
    let mut lines: Vec<&str> = test.lines().collect();
    while lines.last().is_some_and(|line| line.trim_end() == own_call || line.trim().is_empty()) {
        lines.pop();
    }
    let test = lines.join("\n");
    format!(
        "{test}\n\n\nimport {module} as _solution\n\n\ndef test_check():\n{BRING_IN}    check(_solution.{entry_point})\n"
    )
}

/// A test a piece of code: `test_1`, `test_2` and so on, each after the set-up.
pub(super) fn tests_file(imports: &[&str], set_up: &str, tests: &[&str], module: &str) -> String {
    let mut file = String::new();
    for line in imports {
        file.push_str(line.trim_end());
        file.push('\n');
    }
    file.push_str(&format!("import {module} as _solution\n\n\ndef _prepare():\n{BRING_IN}"));
    if !set_up.trim().is_empty() {
        // The set-up uses the candidate's names; as a literal it needs no other indentation.
        file.push_str(&format!("    exec({}, globals())\n", literal(set_up)));
    }
    for (index, test) in tests.iter().enumerate() {
        file.push_str(&format!("\n\ndef test_{}():\n    _prepare()\n", index + 1));
        file.push_str(&body(test));
    }
    file
}

/// A piece of code as the body of a function.
fn body(code: &str) -> String {
    let code = code.trim().replace("\r\n", "\n");
    let can_be_indented = !["\"\"\"", "'''", "\\\n"].iter().any(|part| code.contains(part));
    match can_be_indented || !code.contains('\n') {
        true => code.lines().map(|line| format!("    {line}\n")).collect(),
        false => format!("    exec({}, globals())\n", literal(&code)),
    }
}

/// A text as Python writes it.
fn literal(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if c < ' ' || c == '\u{7f}' => {
                let _ = write!(out, "\\x{:02x}", u32::from(c)); // a String takes everything
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Whether a text can be the name of a Python variable, as far as its letters go.
pub(super) fn is_identifier(name: &str) -> bool {
    !name.is_empty()
        && name.chars().all(|c| c == '_' || c.is_alphanumeric())
        && !name.starts_with(|c: char| c.is_numeric())
}

/// Whether a text has a function or class of this name at the top.
pub(super) fn defines(code: &str, name: &str) -> bool {
    defined(code).any(|defined| defined == name)
}

/// The functions and classes at the top of a text.
pub(super) fn defined(code: &str) -> impl Iterator<Item = &str> {
    code.lines().filter_map(|line| {
        let rest = ["def ", "async def ", "class "].iter().find_map(|word| line.strip_prefix(word))?;
        rest.trim_start().split(|c: char| c != '_' && !c.is_alphanumeric()).next()
    })
}

/// The first of the names of `code` that a test uses.
pub(super) fn used<'a>(code: &'a str, test: &str) -> Option<&'a str> {
    let names: Vec<&str> = defined(code).collect();
    let mut words = test.split(|c: char| c != '_' && !c.is_alphanumeric());
    words.find_map(|word| names.iter().find(|name| **name == word).copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_at_the_end_of_a_test_is_not_made_twice() {
        let file = check_file("def check(candidate):\n    assert candidate()\n\ncheck(f)\n", "solution", "f");
        assert_eq!(file.matches("check(f)").count(), 0);
        assert!(file.ends_with("    check(_solution.f)\n"));
        assert!(file.starts_with("def check(candidate):\n    assert candidate()\n\n\nimport solution"));
    }

    #[test]
    fn code_with_long_strings_is_not_indented() {
        assert_eq!(body("assert f(1,\n  2)\n"), "    assert f(1,\n      2)\n");
        let code = "assert f() == '''a\nb\"'''";
        assert_eq!(body(code), "    exec(\"assert f() == '''a\\nb\\\"'''\", globals())\n");
        assert_eq!(body("assert f('''a''') == 1"), "    assert f('''a''') == 1\n");
    }

    #[test]
    fn the_function_under_test_is_the_one_that_a_test_calls() {
        let code = "import math\nclass Pair:\n    def first(self): pass\ndef helper(x): pass\ndef area(r):\n    pass\n";
        assert_eq!(defined(code).collect::<Vec<_>>(), ["Pair", "helper", "area"]);
        assert_eq!(used(code, "assert math.isclose(area(2), 12.5)"), Some("area"));
        assert_eq!(used(code, "assert first(2)"), None);
        assert!(defines("async def go():\n  pass", "go") && !defines("  def go(): pass", "go"));
    }

    #[test]
    fn names_are_told_from_code() {
        assert!(is_identifier("a_1") && is_identifier("été"));
        assert!(!is_identifier("1a") && !is_identifier("a b") && !is_identifier("") && !is_identifier("a.b"));
    }
}
