//! The harvest of one format: all its windows, page by page.

use crate::harvest::collection_writer::CollectionWriter;
use crate::harvest::page::{Interruption, ReceivedPage};
use crate::harvest::repeated_pages::RepeatedPages;
use crate::harvest::settings::{HarvestSettings, HarvestStatus};
use crate::harvest::windows::{SourceTimes, add_window};
use oaimend_oai::{ErrorCode, Request, UnixSecs, datestamp};
use oaimend_repository::{Failure, Reason};
use oaimend_rules::{HarvestMark, ResponseClocks};
use oaimend_store::{CompleteHarvest, OpenList, RepositoryState, TimeSpan};
use std::time::Duration;

/// The harvest of one format.
pub(crate) struct FormatHarvest<'a> {
    pub(crate) settings: &'a HarvestSettings,
    pub(crate) writer: CollectionWriter<'a>,
    pub(crate) times: SourceTimes,
    /// The `from` of an incremental harvest; `None` for the first one. Sets that it did not cover are harvested as a
    /// whole.
    pub(crate) from_secs: Option<UnixSecs>,
    pub(crate) state: &'a mut RepositoryState,
    /// The records of the source in this format by its own count; `None` if it names none.
    pub(crate) total_elements: Option<u64>,
    pub(crate) observe: &'a (dyn Fn(&HarvestStatus) + Send + Sync),
}

/// Failures of one list in a row before its window is divided, or the harvest is given up.
const FAILURES_MAX: u32 = 3;
/// Restarts of one list after the source has forgotten its token.
const RESTARTS_MAX: u32 = 3;
/// Longest wait between two attempts.
const WAIT_MAX: Duration = Duration::from_secs(300);

/// How a list ended.
enum ListEnd {
    /// The source has sent all of it.
    Complete { ignores_from: bool, ignores_until: bool },
    /// The source fails at it.
    Failed(Failure),
    /// The source refuses the request.
    Refused(ErrorCode),
}

impl FormatHarvest<'_> {
    /// Harvests until all windows of all sets are complete. All received pages are stored then, also after a failure.
    pub(crate) async fn run(&mut self) -> Result<(), Interruption> {
        let end = self.harvest_sets().await;
        match &end {
            Err(Interruption::Store(_)) => {}
            Ok(()) | Err(Interruption::Source(_)) => self.writer.flush().await?,
        }
        end
    }

    async fn harvest_sets(&mut self) -> Result<(), Interruption> {
        let sets = self.sets();
        if sets.iter().all(|set| self.writer.progress.sets_done.contains(set)) {
            // The configuration has fewer sets than the interrupted harvest.
            self.writer.progress.sets_done.clear();
        }
        for set in sets {
            if !self.writer.progress.sets_done.contains(&set) {
                self.harvest_set(&set).await?;
            }
        }
        Ok(())
    }

    /// The sets that are requested; an empty one is the whole repository.
    fn sets(&self) -> Vec<String> {
        match self.settings.sets.as_slice() {
            [] => vec![String::new()],
            sets => sets.to_vec(),
        }
    }

    async fn harvest_set(&mut self, set: &str) -> Result<(), Interruption> {
        if self.writer.progress.open_list.as_ref().is_none_or(|open| open.set != set) {
            if self.writer.progress.open_list.take().is_some() {
                // An open list of another set is from another configuration, and began with another `from`.
                self.writer.progress.start = None;
            }
            self.writer.progress.complete_windows = match self.from_secs {
                Some(from) if covers(&self.writer.progress.sets_covered, set) => {
                    vec![TimeSpan { from_secs: None, until_secs: Some(from.minus(1)) }]
                }
                _ => Vec::new(),
            };
        }
        loop {
            if self.writer.progress.open_list.is_none() {
                let Some(window) = self.next_window() else { return Ok(()) };
                let set = set.to_owned();
                self.writer.progress.open_list = Some(OpenList { set, window, ..OpenList::default() });
                self.writer.begin_list();
            }
            let window = self.writer.progress.open_list.as_ref().map(|open| open.window).unwrap_or_default();
            match self.harvest_list(set).await? {
                ListEnd::Complete { ignores_from, ignores_until } => {
                    self.end_window(set, window, ignores_from, ignores_until).await?;
                    if self.writer.progress.open_list.is_none() {
                        return Ok(());
                    }
                }
                ListEnd::Failed(failure) => self.divide(set, window, failure).await?,
                ListEnd::Refused(code) => return Err(Interruption::Source(self.refused(code))),
            }
        }
    }

    fn next_window(&self) -> Option<TimeSpan> {
        let ignores_windows = self.state.honours_windows == Some(false);
        let size = if ignores_windows { None } else { self.state.window_secs_max };
        let size = size.map(|size| i64::try_from(size).unwrap_or(i64::MAX));
        self.times.next_window(&self.writer.progress.complete_windows, size)
    }

    /// Stores that a window is complete, and opens the next one in the same transaction.
    async fn end_window(
        &mut self,
        set: &str,
        window: TimeSpan,
        ignores_from: bool,
        ignores_until: bool,
    ) -> Result<(), Interruption> {
        if ignores_from || ignores_until {
            self.state.honours_windows = Some(false);
        } else if window != TimeSpan::default() {
            self.state.honours_windows = Some(true);
        }
        let covered = TimeSpan {
            from_secs: if ignores_from { None } else { window.from_secs },
            until_secs: if ignores_until { None } else { window.until_secs },
        };
        add_window(&mut self.writer.progress.complete_windows, covered);
        if window.until_secs.is_some() {
            // The next window may be longer.
            self.state.window_secs_max = self.state.window_secs_max.map(|size| size.saturating_mul(2));
        }
        let ended = self.writer.progress.open_list.take();
        match self.next_window() {
            Some(window) => {
                let reaches = ended.map(|ended| ended.reaches).unwrap_or_default();
                let set = set.to_owned();
                self.writer.progress.open_list =
                    Some(OpenList { set, window, reaches, ..OpenList::default() });
                self.writer.begin_list();
            }
            None => {
                self.writer.progress.sets_done.push(set.to_owned());
                self.writer.progress.complete_windows.clear();
                let reaches = ended.map(|ended| ended.reaches);
                self.writer.progress.reached = self.writer.progress.reached.or(reaches);
                if self.sets().iter().all(|set| self.writer.progress.sets_done.contains(set)) {
                    self.end_harvest();
                }
            }
        }
        self.writer.commit().await
    }

    /// Notes that all sets are complete.
    fn end_harvest(&mut self) {
        let sets = self.sets();
        let progress = &mut self.writer.progress;
        progress.sets_done.clear();
        progress.sets_covered = sets;
        progress.last_complete = progress.reached.take();
    }

    /// Divides a window that failed. Fails if it cannot be divided.
    async fn divide(&mut self, set: &str, window: TimeSpan, failure: Failure) -> Result<(), Interruption> {
        if self.state.honours_windows == Some(false) {
            return Err(Interruption::Source(failure));
        }
        let Some(size) = self.times.halved_secs(window) else { return Err(Interruption::Source(failure)) };
        tracing::info!(
            repo = self.writer.harvest.id,
            prefix = self.writer.prefix,
            window_secs = size,
            because = failure.details_for_operators(),
            "a window of a harvest fails; it is divided"
        );
        self.state.window_secs_max = u64::try_from(size).ok();
        let reaches = self.writer.progress.open_list.take().map(|open| open.reaches).unwrap_or_default();
        let window = self.next_window().unwrap_or(window);
        let set = set.to_owned();
        self.writer.progress.open_list = Some(OpenList { set, window, reaches, ..OpenList::default() });
        self.writer.begin_list_again();
        self.writer.commit().await
    }

    /// Harvests the open list to its end.
    async fn harvest_list(&mut self, set: &str) -> Result<ListEnd, Interruption> {
        let (mut failures, mut restarts) = (0, 0);
        let (mut ignores_from, mut ignores_until) = (false, false);
        let mut repeated = RepeatedPages::default();
        loop {
            let Some(open) = self.writer.progress.open_list.clone() else {
                return Ok(ListEnd::Complete { ignores_from, ignores_until });
            };
            let window = (open.window.from_secs, open.window.until_secs);
            let request = self.list_request(set, &open);
            let received = self.writer.receive_page(request, window).await;
            let page = match received {
                Ok(page) => page,
                Err(Interruption::Source(failure)) => {
                    failures += 1;
                    if failures >= FAILURES_MAX || failure.retry_after().is_none() {
                        return Ok(ListEnd::Failed(failure));
                    }
                    self.writer.flush().await?;
                    self.pause_after(&failure).await;
                    continue;
                }
                Err(store) => return Err(store),
            };
            match page.summary.page.error {
                None | Some(ErrorCode::NoRecordsMatch) => {}
                Some(ErrorCode::BadResumptionToken)
                    if open.next_token.is_some() && restarts < RESTARTS_MAX =>
                {
                    restarts += 1;
                    repeated = RepeatedPages::default();
                    self.begin_list_again();
                    continue;
                }
                Some(code) => return Ok(ListEnd::Refused(code)),
            }
            failures = 0;
            ignores_from |= page.outside.before;
            ignores_until |= page.outside.after;
            let token = page.summary.page.token.clone();
            if token.is_some() && token == open.next_token {
                let details = format!("the source sent the token of a page of {} again", self.writer.prefix);
                return Ok(ListEnd::Failed(Failure::new(Reason::Incomplete, details)));
            }
            if page.identifiers_hash().is_some_and(|page| repeated.note(page)) {
                // The next harvest must not continue in the circle.
                self.begin_list_again();
                self.writer.commit().await?;
                let details = format!("the list of {} goes in circles", self.writer.prefix);
                return Ok(ListEnd::Failed(Failure::new(Reason::Incomplete, details)));
            }
            let has_more = token.is_some();
            self.store_page(page, token).await?;
            if !has_more {
                return Ok(ListEnd::Complete { ignores_from, ignores_until });
            }
            let harvest = self.writer.harvest;
            if harvest.turn.is_over(&*harvest.clock) {
                // The next turn may be hours away.
                self.writer.flush().await?;
            }
            if harvest.pause(self.settings.request_gap).await {
                // The token may have expired because of the wait.
                restarts = 0;
            }
        }
    }

    fn begin_list_again(&mut self) {
        self.writer.begin_list_again();
        if let Some(open) = &mut self.writer.progress.open_list {
            (open.next_token, open.cursor) = (None, 0);
        }
    }

    fn list_request(&self, set: &str, open: &OpenList) -> Request {
        let (from, until) = self.times.to_datestamps(open.window);
        let set = Some(set).filter(|set| !set.is_empty());
        let first = Request::list_records(self.writer.prefix, set, from.as_deref(), until.as_deref());
        match &open.next_token {
            Some(token) => first.with_token(token.clone()),
            None => first,
        }
    }

    /// Stores a page and the place of the next one.
    async fn store_page(&mut self, page: ReceivedPage, token: Option<String>) -> Result<(), Interruption> {
        let (mark, has_more) = (self.mark_of(&page), token.is_some());
        if let Some(open) = &mut self.writer.progress.open_list {
            if open.reaches == CompleteHarvest::default() {
                open.reaches = CompleteHarvest { from_secs: mark.from_secs(), lead_secs: mark.lead_secs() };
            }
            open.cursor += page.count;
            open.next_token = token;
        }
        let total = page.summary.page.progress.1;
        self.total_elements = page.summary.page.total_elements.or(self.total_elements);
        // The end of a list is committed together with the end of its window.
        if has_more {
            self.writer.commit_if_due().await?;
        }
        let cursor = self.writer.progress.open_list.as_ref().map_or(0, |open| open.cursor);
        (self.observe)(&HarvestStatus { prefix: self.writer.prefix.to_owned(), records: cursor, total });
        Ok(())
    }

    /// The state that the copy has reached if this is the first page of its harvest.
    fn mark_of(&self, page: &ReceivedPage) -> HarvestMark {
        let response_date = page.summary.page.response_date.as_deref();
        let clocks = ResponseClocks {
            response_date_secs: response_date.and_then(datestamp::to_secs),
            http_date_secs: page.summary.page.http_date_secs,
            sent_at_secs: page.sent_at_secs,
        };
        HarvestMark::new(&clocks, self.times.granularity)
    }

    async fn pause_after(&self, failure: &Failure) {
        let secs = failure.retry_after().unwrap_or(1);
        let wait = Duration::from_secs(secs)
            .clamp(self.settings.request_gap, WAIT_MAX.max(self.settings.request_gap));
        self.writer.harvest.pause(wait).await;
    }

    fn refused(&self, code: ErrorCode) -> Failure {
        let (id, prefix, code) = (&self.writer.harvest.id, self.writer.prefix, code.name());
        let details =
            format!("{id} refuses the list of {prefix} with {code}; see whether it has this format");
        Failure::new(Reason::Configuration, details)
    }
}

/// Whether a harvest of these sets contained all records of `set`. A set contains its subsets.
fn covers(covered: &[String], set: &str) -> bool {
    covered.iter().any(|covered| {
        let rest = set.strip_prefix(covered.as_str());
        covered.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_is_covered_by_itself_its_parents_and_the_whole_repository() {
        for (covered, set, expected) in [
            (vec![], "a", false),
            (vec!["a"], "a", true),
            (vec!["a"], "a:b", true),
            (vec!["a"], "ab", false),
            (vec!["a:b"], "a", false),
            (vec!["b", "a"], "a", true),
            (vec!["a"], "", false),
            (vec![""], "a", true),
            (vec![""], "", true),
        ] {
            let covered: Vec<String> = covered.into_iter().map(str::to_owned).collect();
            assert_eq!(covers(&covered, set), expected, "{set:?} of {covered:?}");
        }
    }
}
