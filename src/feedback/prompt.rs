//! An entry as text for the agent: worst first, cut to a budget, no test's name lost.

use std::fmt::Write;

use serde_json::json;

use super::FeedbackEntry;
use crate::outcome::{Error, SuiteResult, TestResult, TestStatus};
use crate::reward::RewardSignal;

/// The budget of a prompt, in characters, unless the caller says otherwise.
pub const DEFAULT_MAX_CHARS: usize = 4000;

const MESSAGE_CHARS: usize = 400;
const DETAILS_CHARS: usize = 2000;
const REASON_CHARS: usize = 40;
/// What a message or details costs beyond its text: indentation, fences, tags, keys.
const FRAME_CHARS: usize = 56;

/// How a prompt is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PromptStyle {
    /// For people and most models.
    #[default]
    Markdown,
    /// For models that like tags.
    Xml,
    /// For programs.
    Json,
}

impl PromptStyle {
    /// The style named `word`.
    pub fn parse(word: &str) -> Result<Self, Error> {
        match word {
            "markdown" => Ok(Self::Markdown),
            "xml" => Ok(Self::Xml),
            "json" => Ok(Self::Json),
            _ => Err(Error::UnknownWord {
                argument: "style",
                allowed: "markdown, xml, json",
                got: word.to_owned(),
            }),
        }
    }

    /// How many characters `c` takes in this style.
    fn width(self, c: char) -> usize {
        match (self, c) {
            (Self::Markdown, '\n') => 4, // continuation lines are indented
            (Self::Markdown, _) => 1,
            (Self::Xml, '&') => 5,
            (Self::Xml, '<' | '>') => 4,
            (Self::Xml, '"') => 6,
            (Self::Json, '"' | '\\' | '\n' | '\r' | '\t') => 2,
            (Self::Json, c) if (c as u32) < 0x20 => 6,
            (Self::Xml | Self::Json, _) => 1,
        }
    }
}

/// A failing test and as much of its text as fits.
struct Shown<'a> {
    test: &'a TestResult,
    message: String,
    details: String,
}

/// Counts of the tests the agent may see, and of those it may not.
#[derive(Default)]
struct Counts {
    passed: usize,
    failed: usize,
    errors: usize,
    skipped: usize,
    hidden_passed: usize,
    hidden_active: usize,
}

impl Counts {
    fn of(suite: &SuiteResult) -> Self {
        let mut counts = Self::default();
        for test in suite.tests() {
            let status = test.status();
            if suite.is_hidden(test.name()) {
                counts.hidden_active += usize::from(status != TestStatus::Skipped);
                counts.hidden_passed += usize::from(status == TestStatus::Passed);
                continue;
            }
            match status {
                TestStatus::Passed => counts.passed += 1,
                TestStatus::Failed => counts.failed += 1,
                TestStatus::Error => counts.errors += 1,
                TestStatus::Skipped => counts.skipped += 1,
            }
        }
        counts
    }
}

impl FeedbackEntry {
    /// What to show the agent next.
    ///
    /// Failing tests come worst first: critical before major before minor, errors before failures, else in the
    /// suite's order. Messages, then details, are cut so that the text keeps to `max_chars` characters; the
    /// name of a failing test is never cut, so the text is longer when the names alone are. Hidden tests are
    /// shown only as counts.
    pub fn to_prompt(&self, max_chars: usize, style: PromptStyle) -> String {
        let suite = &self.suite_result;
        let mut failing: Vec<&TestResult> = suite.failing().filter(|t| !suite.is_hidden(t.name())).collect();
        failing.sort_by_key(|t| (std::cmp::Reverse(t.severity()), t.status() != TestStatus::Error));
        let mut shown: Vec<Shown<'_>> = failing
            .into_iter()
            .map(|test| Shown { test, message: String::new(), details: String::new() })
            .collect();
        let counts = Counts::of(suite);
        let mut problems = Vec::new();
        let names_only = self.render(&shown, &problems, &counts, style).chars().count();
        let mut left = max_chars.saturating_sub(names_only);
        for problem in &suite.about().problems {
            let kept = keep_start(problem, MESSAGE_CHARS, &mut left, style);
            if problem.is_empty() || !kept.is_empty() {
                problems.push(kept);
            }
        }
        for one in &mut shown {
            one.message = keep_start(one.test.message(), MESSAGE_CHARS, &mut left, style);
        }
        for one in &mut shown {
            one.details = keep_end(one.test.details(), DETAILS_CHARS, &mut left, style);
        }
        self.render(&shown, &problems, &counts, style)
    }

    fn render(
        &self,
        shown: &[Shown<'_>],
        problems: &[String],
        counts: &Counts,
        style: PromptStyle,
    ) -> String {
        match style {
            PromptStyle::Markdown => self.to_markdown(shown, problems, counts),
            PromptStyle::Xml => self.to_xml(shown, problems, counts),
            PromptStyle::Json => self.to_json_prompt(shown, problems, counts),
        }
    }

    fn to_markdown(&self, shown: &[Shown<'_>], problems: &[String], counts: &Counts) -> String {
        let mut out = String::new();
        let active = counts.passed + counts.failed + counts.errors;
        let _ = write!(out, "## Iteration {}: {} of {active} tests pass", self.iteration, counts.passed);
        let _ = write!(
            out,
            " ({} failed, {} errors, {} skipped)\n\n",
            counts.failed, counts.errors, counts.skipped
        );
        let RewardSignal { total, progression, .. } = self.reward;
        let _ = writeln!(out, "Reward {total:.3}, progression {progression:+.3}.");
        if counts.hidden_active > 0 {
            let _ = writeln!(out, "Hidden tests: {} of {} pass.", counts.hidden_passed, counts.hidden_active);
        }
        for problem in problems {
            let _ = writeln!(out, "Problem outside the tests: {}", indented(problem));
        }
        if !shown.is_empty() {
            out.push_str("\nFix first:\n\n");
        }
        for (number, Shown { test, message, details }) in shown.iter().enumerate() {
            let _ = write!(out, "{}. `{}` - {}", number + 1, one_line(test.name()), kind(test));
            for text in [message, details].into_iter().filter(|text| !text.is_empty()) {
                if std::ptr::eq(text, message) && is_plain_line(text) {
                    let _ = write!(out, "\n   {text}");
                } else {
                    let fence = fence_for(text);
                    let _ = write!(out, "\n   {fence}\n   {}\n   {fence}", indented(text));
                }
            }
            out.push('\n');
        }
        out
    }

    fn to_xml(&self, shown: &[Shown<'_>], problems: &[String], counts: &Counts) -> String {
        let mut out = String::new();
        let _ = writeln!(
            out,
            "<feedback iteration=\"{}\" passed=\"{}\" failed=\"{}\" errors=\"{}\" skipped=\"{}\" \
             reward=\"{:.3}\" progression=\"{:+.3}\">",
            self.iteration,
            counts.passed,
            counts.failed,
            counts.errors,
            counts.skipped,
            self.reward.total,
            self.reward.progression,
        );
        if counts.hidden_active > 0 {
            let (passed, total) = (counts.hidden_passed, counts.hidden_active);
            let _ = writeln!(out, "  <hidden passed=\"{passed}\" total=\"{total}\"/>");
        }
        for problem in problems {
            let _ = writeln!(out, "  <problem>{}</problem>", xml(problem));
        }
        for Shown { test, message, details } in shown {
            let (name, status) = (xml_attribute(test.name()), test.status().as_str());
            let _ = write!(
                out,
                "  <test name=\"{name}\" status=\"{status}\" severity=\"{}\"",
                test.severity().as_str()
            );
            if let Some(reason) = test.reason() {
                let _ = write!(out, " reason=\"{}\"", xml_attribute(&start_of(reason, REASON_CHARS)));
            }
            out.push('>');
            if !message.is_empty() {
                let _ = write!(out, "<message>{}</message>", xml(message));
            }
            if !details.is_empty() {
                let _ = write!(out, "<details>{}</details>", xml(details));
            }
            out.push_str("</test>\n");
        }
        out.push_str("</feedback>\n");
        out
    }

    fn to_json_prompt(&self, shown: &[Shown<'_>], problems: &[String], counts: &Counts) -> String {
        let tests: Vec<_> = shown
            .iter()
            .map(|Shown { test, message, details }| {
                let mut one = json!({
                    "name": test.name(),
                    "status": test.status().as_str(),
                    "severity": test.severity().as_str(),
                });
                let reason = start_of(test.reason().unwrap_or(""), REASON_CHARS);
                let texts = [("reason", &reason), ("message", message), ("details", details)];
                for (key, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
                    if let Some(object) = one.as_object_mut() {
                        object.insert(key.to_owned(), text.as_str().into());
                    }
                }
                one
            })
            .collect();
        json!({
            "iteration": self.iteration,
            "passed": counts.passed,
            "failed": counts.failed,
            "errors": counts.errors,
            "skipped": counts.skipped,
            "hidden": { "passed": counts.hidden_passed, "total": counts.hidden_active },
            "reward": self.reward.total,
            "progression": self.reward.progression,
            "problems": problems,
            "fix_first": tests,
        })
        .to_string()
    }
}

fn kind(test: &TestResult) -> String {
    let (severity, status) = (test.severity().as_str(), test.status().as_str());
    match test.reason() {
        Some(reason) => format!("{severity}, {status} ({})", one_line(&start_of(reason, REASON_CHARS))),
        None => format!("{severity}, {status}"),
    }
}

/// Whether text stays one line of prose: no line end, and nothing that opens a fence.
fn is_plain_line(text: &str) -> bool {
    !text.contains('\n') && !text.trim_start().starts_with(['`', '~'])
}

fn one_line(text: &str) -> String {
    text.replace('\r', "\\r").replace('\n', "\\n")
}

fn indented(text: &str) -> String {
    text.trim_end().replace('\n', "\n   ")
}

/// A fence longer than any run of backticks in the text.
fn fence_for(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The same within an attribute, where a reader would make blanks of line ends.
fn xml_attribute(text: &str) -> String {
    xml(text).replace('\n', "&#10;").replace('\t', "&#9;")
}

fn start_of(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

const CUT: &str = "[...]";

/// The start of `text` as far as `most` characters and the budget `left` allow, marked where cut.
fn keep_start(text: &str, most: usize, left: &mut usize, style: PromptStyle) -> String {
    keep(text, most, left, style, |kept| {
        let start: String = text.chars().take(kept).collect();
        format!("{start}{CUT}")
    })
}

/// The end of `text` likewise: a traceback says most in its last lines.
fn keep_end(text: &str, most: usize, left: &mut usize, style: PromptStyle) -> String {
    let all = text.chars().count();
    keep(text, most, left, style, |kept| {
        let end: String = text.chars().skip(all - kept).collect();
        format!("{CUT}{end}")
    })
}

/// As much of `text` as fits, made by `cut` where not all of it does; nothing where too little would be left.
fn keep(
    text: &str,
    most: usize,
    left: &mut usize,
    style: PromptStyle,
    cut: impl Fn(usize) -> String,
) -> String {
    let Some(mut room) = room_for(text, most, left) else { return String::new() };
    loop {
        let (from_start, _) = fitting(text.chars(), room, style);
        let kept = if from_start == text.chars().count() {
            text.to_owned()
        } else {
            // The widest characters may be at either end, and `cut` keeps one of the two.
            cut(from_start.min(fitting(text.chars().rev(), room, style).0))
        };
        let fences = if style == PromptStyle::Markdown { 2 * (fence_for(&kept).len() - 3) } else { 0 };
        let used = fitting(kept.chars(), usize::MAX, style).1 + fences;
        if used <= room + CUT.len() {
            *left -= (used + FRAME_CHARS).min(*left);
            return kept;
        }
        room = (room / 2).min(room.saturating_sub(fences));
        if room < 16 {
            return String::new();
        }
    }
}

/// How much of a text may be kept; `None` when it is empty or less than a few words would be left of it.
fn room_for(text: &str, most: usize, left: &usize) -> Option<usize> {
    let room = left.checked_sub(FRAME_CHARS)?.min(most);
    (!text.is_empty() && room >= 16).then_some(room)
}

/// How many of the characters fit into `room`, and what they take.
fn fitting(chars: impl Iterator<Item = char>, room: usize, style: PromptStyle) -> (usize, usize) {
    let (mut kept, mut used) = (0, 0);
    for c in chars {
        let width = style.width(c);
        if used + width > room {
            break;
        }
        used += width;
        kept += 1;
    }
    (kept, used)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feedback::CodeSubmission;
    use crate::outcome::{About, TestSeverity};
    use crate::reward::Strategy;
    use proptest::{prop_assert, proptest};

    const STYLES: [PromptStyle; 3] = [PromptStyle::Markdown, PromptStyle::Xml, PromptStyle::Json];

    fn entry(tests: Vec<TestResult>, hidden: &[&str]) -> FeedbackEntry {
        let about = About { hidden: hidden.iter().map(ToString::to_string).collect(), ..About::named("s") };
        let suite = SuiteResult::new(tests, about).unwrap();
        let reward = Strategy::default().signal(&suite, None, None).unwrap();
        FeedbackEntry::new(CodeSubmission::new("x = 1", 1, "initial"), suite, reward)
    }

    fn failed(name: &str) -> TestResult {
        TestResult::new(name, TestStatus::Failed)
    }

    #[test]
    fn the_worst_comes_first() {
        let tests = vec![
            failed("minor").with_severity(TestSeverity::Minor),
            failed("major"),
            TestResult::new("error", TestStatus::Error),
            failed("critical").with_severity(TestSeverity::Critical),
        ];
        let text = entry(tests, &[]).to_prompt(4000, PromptStyle::Markdown);
        let at = |name: &str| text.find(&format!("`{name}`")).unwrap();
        assert!(at("critical") < at("error") && at("error") < at("major") && at("major") < at("minor"));
    }

    #[test]
    fn hidden_tests_are_only_counted() {
        let tests = vec![failed("secret").with_message("expected 42"), failed("open")];
        for style in STYLES {
            let text = entry(tests.clone(), &["secret"]).to_prompt(4000, style);
            assert!(!text.contains("secret") && !text.contains("42"), "{text}");
            assert!(text.contains("open"));
        }
    }

    #[test]
    fn xml_is_escaped_and_json_is_json() {
        let one = entry(vec![failed("t[<&\">]").with_message("a < b & \"c\"\u{1}")], &[]);
        let xml = one.to_prompt(4000, PromptStyle::Xml);
        assert!(xml.contains("a &lt; b &amp; &quot;c&quot;\u{fffd}"), "{xml}");
        let json: serde_json::Value = serde_json::from_str(&one.to_prompt(4000, PromptStyle::Json)).unwrap();
        assert_eq!(json["fix_first"][0]["name"], "t[<&\">]");
    }

    #[test]
    fn a_fence_in_the_details_does_not_end_the_fence() {
        let text =
            entry(vec![failed("t").with_details("```\nx\n```")], &[]).to_prompt(4000, PromptStyle::Markdown);
        assert!(text.contains("````"));
    }

    proptest! {
        #[test]
        fn the_budget_holds_and_no_name_is_lost(
            texts in proptest::collection::vec(".{0,300}", 0..12), max_chars in 0_usize..3000,
        ) {
            let tests: Vec<_> = texts.iter().enumerate()
                .map(|(i, t)| failed(&format!("test_{i}")).with_message(t).with_details(&t.repeat(9)))
                .collect();
            let one = entry(tests, &[]);
            let bare: Vec<_> = (0..texts.len()).map(|i| failed(&format!("test_{i}"))).collect();
            for style in STYLES {
                let text = one.to_prompt(max_chars, style);
                let least = entry(bare.clone(), &[]).to_prompt(max_chars, style).chars().count();
                prop_assert!(text.chars().count() <= max_chars.max(least), "{style:?}");
                for i in 0..texts.len() {
                    let name = format!("test_{i}");
                    prop_assert!(text.contains(&name));
                }
            }
        }
    }
}
