//! When files are read again whose records the repository has refused.

use oaimend_rules::backoff;
use std::collections::BTreeMap;
use std::time::Duration;

/// The wait before the first retry.
const WAIT_MIN: Duration = Duration::from_secs(5);
/// The longest wait between two retries.
const WAIT_MAX: Duration = Duration::from_secs(600);

/// The retries of a folder. A record is refused because of other records, for example because another repository has its
/// identifier, so a retry waits until the store has changed. The waits grow, because most changes are of other records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RefusalRetries {
    /// `None`: no record is refused.
    last: Option<LastTry>,
    /// The number of changes of the store at the look before.
    changes_before: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LastTry {
    /// The number of changes of the store before it.
    changes: u64,
    at: Duration,
    tries: u32,
}

impl RefusalRetries {
    /// Whether the files are read again now. Each look asks before it reads files. `changes` is the number of changes of the
    /// store, and `now` the uptime.
    pub(super) fn are_due(&mut self, has_refused: bool, changes: u64, now: Duration) -> bool {
        let changes_before = std::mem::replace(&mut self.changes_before, changes);
        if !has_refused {
            self.last = None;
            return false;
        }
        let Some(last) = self.last else {
            // The look before has tried them. What has changed since may be the reason to accept them.
            self.last = Some(LastTry { changes: changes_before, at: now, tries: 1 });
            return false;
        };
        if changes == last.changes || now.saturating_sub(last.at) < backoff(WAIT_MIN, last.tries, WAIT_MAX) {
            return false;
        }
        self.last = Some(LastTry { changes, at: now, tries: last.tries.saturating_add(1) });
        true
    }
}

/// The files that a retry reads again, and why their first record was refused before, which the log has already.
#[derive(Debug, Default)]
pub(super) struct RetriedFiles(BTreeMap<String, KnownRefusal>);

#[derive(Debug)]
struct KnownRefusal {
    reason: String,
    /// Whether this retry has found the same reason, so that the other records of the file are refused as before too.
    is_found: bool,
}

impl RetriedFiles {
    /// A retry begins to read these files, which were refused for these reasons.
    pub(super) fn begin<'p>(&mut self, refused: impl Iterator<Item = (&'p String, &'p str)>) {
        let known = |reason: &str| KnownRefusal { reason: reason.to_owned(), is_found: false };
        self.0 = refused.map(|(path, reason)| (path.clone(), known(reason))).collect();
    }

    /// Whether the log does not have this refusal yet.
    pub(super) fn is_news(&mut self, path: &str, problem: &str) -> bool {
        let Some(known) = self.0.get_mut(path) else { return true };
        if known.is_found || known.reason == problem {
            known.is_found = true;
            return false;
        }
        self.0.remove(path);
        true
    }

    /// The retry has ended. A later refusal is news.
    pub(super) fn end(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_a_retry_are_news_only_if_the_first_one_of_a_file_is_another_one() {
        let mut retried = RetriedFiles::default();
        let files = ["a.xml", "b.xml", "c.xml"].map(str::to_owned);
        retried.begin(files.iter().map(|path| (path, "first")));
        for (path, problem, is_news) in [
            ("a.xml", "first", false),
            ("a.xml", "second", false),
            ("a.xml", "first", false),
            ("b.xml", "second", true),
            ("b.xml", "first", true),
            ("d.xml", "first", true),
        ] {
            assert_eq!(retried.is_news(path, problem), is_news, "{path}: {problem}");
        }
        // The retry of this one has succeeded.
        retried.end();
        assert!(retried.is_news("c.xml", "first"));
    }

    #[test]
    fn refused_files_are_read_again_after_changes_and_less_and_less_often() {
        let mut retries = RefusalRetries::default();
        let mut due = |has_refused: bool, changes: u64, secs: u64| {
            retries.are_due(has_refused, changes, Duration::from_secs(secs))
        };
        assert!(!due(false, 2, 0));
        assert!(!due(true, 2, 10), "they were just refused");
        assert!(!due(true, 2, 1_000), "nothing has changed");
        assert!(due(true, 3, 1_000));
        assert!(!due(true, 4, 1_009), "too early");
        assert!(due(true, 4, 1_010));
        assert!(!due(true, 4, 9_000), "nothing has changed since");
        for round in 0..20 {
            due(true, 5 + round, 10_000 + round * 600);
        }
        assert!(!due(true, 99, 10_000 + 19 * 600 + 599));
        assert!(due(true, 99, 10_000 + 20 * 600), "the waits have a limit");
        assert!(!due(false, 99, 50_000));
        assert!(!due(true, 100, 50_000), "they were just refused");
        assert!(due(true, 100, 50_005), "a change after the try before counts, and the waits begin again");
    }
}
