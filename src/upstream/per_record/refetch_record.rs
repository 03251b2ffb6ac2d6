//! A record that is about to be put aside is asked for once more, by itself.
//!
//! Some sources break a record only in lists: a page that is cut by its length, a
//! record that was written while the page was. What `GetRecord` gives is delivered in
//! the place of the broken one, if it is whole and the same record; and is known
//! by the broken one's bytes, so that a further attempt at the page leaves both out.

use crate::oai::{Request, Verb};
use crate::upstream::adapt::subrequest::inquire;
use crate::upstream::http::deadline::Deadline;
use crate::upstream::page::buffer::{PageBuffer, PageItem};
use crate::upstream::page::resume::Resumer;
use crate::upstream::session::list_session::{ListSession, resolved};
use crate::upstream::xml::rebase_namespaces::NamespaceScope;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Whether a source is worth such a question. Pure: the time is an argument.
#[derive(Debug, Default)]
pub(crate) struct RefetchGate(Mutex<Outcomes>);

#[derive(Debug, Default)]
struct Outcomes {
    failures_in_a_row: u32,
    rests_until: Option<SystemTime>,
}

/// Questions of this kind for one request of a harvester.
const RECALLS_MAX: u32 = 20;
/// Questions in a row that brought nothing before the source is spared them.
const FAILURES_MAX: u32 = 3;
/// For how long it is then.
const REST: Duration = Duration::from_secs(600);
/// Longest wait for one record: the page behind it waits meanwhile.
const TIME_MAX: Duration = Duration::from_secs(5);

impl RefetchGate {
    fn are_worth_it(&self, now: SystemTime) -> bool {
        let outcomes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        outcomes.rests_until.is_none_or(|until| until <= now)
    }

    pub(crate) fn note(&self, now: SystemTime, was_had: bool) {
        let mut outcomes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        outcomes.failures_in_a_row = if was_had { 0 } else { outcomes.failures_in_a_row + 1 };
        if outcomes.failures_in_a_row >= FAILURES_MAX {
            outcomes.rests_until = Some(now + REST);
            outcomes.failures_in_a_row = 0;
        }
    }
}

impl ListSession<'_> {
    /// Asks for the records that are about to be put aside, and puts those that are had into their places.
    pub(crate) async fn recall(&mut self, pieces: &mut PageBuffer, splice: &Resumer) {
        if !self.job.mapping.quirks.refetch_broken_records || self.job.request.verb() != Verb::ListRecords {
            return;
        }
        let wanted = pieces.recallable(|hash| splice.knows(hash));
        if wanted.is_empty() {
            return;
        }
        let Some(prefix) = self.metadata_prefix() else { return };
        let place = NamespaceScope::of(&String::from_utf8_lossy(&splice.head_with(pieces)));
        for (index, identifier) in wanted {
            let had = self.recalled(&resolved(identifier.as_bytes()), &prefix, &place).await;
            if let (Some((hash, record)), Some(broken)) = (had, pieces.found.get(index).map(PageItem::hash)) {
                pieces.put_in_place(index, record.as_bytes());
                self.account.recalled += 1;
                if !self.recalled.contains(&(broken, hash)) {
                    self.recalled.push((broken, hash));
                }
            }
        }
    }

    /// What headers know those by that were had and delivered.
    pub(crate) fn recalled_and_delivered(&self) -> Vec<u64> {
        let delivered = self.delivered.hashes();
        let had = self.recalled.iter().filter(|(broken, _)| delivered.contains(broken));
        had.map(|(_, hash)| *hash).collect()
    }

    /// The time for one more such question; `None` where it is not worth it.
    pub(crate) fn budget_of_a_recall(&mut self) -> Option<Deadline> {
        if self.recalls >= RECALLS_MAX {
            return None;
        }
        let budget = self.budget_of_a_question()?;
        self.recalls += 1;
        Some(budget)
    }

    /// The time for one `GetRecord`; `None` while the source is spared them.
    pub(crate) fn budget_of_a_question(&mut self) -> Option<Deadline> {
        let (job, now) = (self.job, self.budget.now());
        if !job.client.recalls.are_worth_it(now) {
            return None;
        }
        self.account.attempts += 1;
        // What is left is first of all for the rest of the page.
        Some(Deadline::new(Arc::clone(&job.clock), TIME_MAX.min(self.budget.left() / 2)))
    }

    async fn recalled(
        &mut self,
        identifier: &str,
        prefix: &str,
        place: &NamespaceScope,
    ) -> Option<(u64, String)> {
        let (job, now) = (self.job, self.budget.now());
        let mut budget = self.budget_of_a_recall()?;
        let request = Request::get_record(identifier, prefix);
        let told = Box::pin(inquire(job, &request, self.manner(), usize::MAX, true, &mut budget)).await;
        self.budget.spend(&budget);
        let record = match &told {
            Ok(told) => told.record(identifier).map(|item| {
                let record = String::from_utf8_lossy(&item.bytes);
                (item.hash, told.scope().transplanted(&record, place))
            }),
            // That says nothing of the source.
            Err(unanswered) if unanswered.says_nothing() => return None,
            Err(_) => None,
        };
        job.client.recalls.note(now, record.is_some());
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_that_has_nothing_better_is_spared_for_a_while() {
        let at = |secs| SystemTime::UNIX_EPOCH + Duration::from_secs(secs);
        let recalls = RefetchGate::default();
        for had in [false, false, true, false, false] {
            recalls.note(at(0), had);
            assert!(recalls.are_worth_it(at(0)));
        }
        recalls.note(at(0), false);
        assert!(!recalls.are_worth_it(at(599)) && recalls.are_worth_it(at(600)));
        recalls.note(at(600), false);
        assert!(recalls.are_worth_it(at(600)), "counted anew");
    }
}
