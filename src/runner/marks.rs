//! The marks of one run, as the processes of the candidate and of the judge send them.

use super::record::cut;
use crate::mark::Mark;

const MOST: usize = 100;

/// Marks, each once, as many and as long as somebody would read.
#[derive(Debug, Default)]
pub(super) struct Marks(Vec<Mark>);

impl Marks {
    /// Adds a mark; one of an unknown kind is left out.
    pub(super) fn add(&mut self, kind: &str, evidence: &str, test: Option<&str>) {
        let Some(mark) = Mark::new(kind, &cut(evidence), test.map(cut).as_deref()) else { return };
        let is_known = |known: &Mark| known.kind == mark.kind && known.evidence == mark.evidence;
        if self.0.len() < MOST && !self.0.iter().any(is_known) {
            self.0.push(mark);
        }
    }

    pub(super) fn into_list(self) -> Vec<Mark> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_said_once_and_nothing_of_an_unknown_kind() {
        let mut marks = Marks::default();
        marks.add("blocked", "x", Some("a"));
        marks.add("blocked", "x", Some("b"));
        marks.add("odd", "y", None);
        assert_eq!(marks.into_list(), Mark::new("blocked", "x", Some("a")).into_iter().collect::<Vec<_>>());
    }
}
