//! The simulated proxy: it answers from the source or from the mirror, and records spans.

use oaimend::mirror::rules::{HarvestMark, ListState, ListTimes, ServedSpan, ServedSpans};

use super::Broken;
use super::mirror::Mirror;
use super::source::{Items, RECORDS, Source, SourceList};

/// The repository that a harvester requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    /// The source, or the mirror while the source fails.
    LiveThenMirror,
    /// The mirror with its own stamps.
    Mirror,
}

/// The rest of a list, as a resumptionToken and the ledger hold it.
#[derive(Clone, Debug)]
pub(super) enum Token {
    Source { from_secs: Option<i64>, list: SourceList, state: ListState, is_delivered: [bool; RECORDS] },
    Failover { from_secs: i64, first: usize, state: ListState, date_secs: i64, is_delivered: [bool; RECORDS] },
    Mirror { from_secs: i64, times: ListTimes, after: Option<(i64, usize)> },
}

/// A response with a page of a list.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) items: Items,
    pub(super) date_secs: i64,
    /// The highest datestamp of the page.
    pub(super) last_stamp_secs: Option<i64>,
    /// `None` on the last page.
    pub(super) token: Option<Token>,
}

/// The time, and whether the source answers at this time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) now_secs: i64,
    /// The clock of the proxy.
    pub(super) our_secs: i64,
    pub(super) is_answering: bool,
}

#[derive(Debug, Default)]
pub(super) struct Proxy {
    broken: Option<Broken>,
    live_spans: ServedSpans,
    mirror_spans: ServedSpans,
    pub(super) widened: usize,
    pub(super) failovers: usize,
    pub(super) failovers_inside_lists: usize,
}

impl Proxy {
    pub(super) fn new(broken: Option<Broken>) -> Self {
        Self { broken, ..Self::default() }
    }

    pub(super) fn restart(&mut self) {
        // Spans are stored before a page is sent. Without the rule they are lost here.
        if self.broken == Some(Broken::SpansInMemory) {
            (self.live_spans, self.mirror_spans) = Default::default();
        }
    }

    /// Answers the first request of a list; `None` for a failure.
    pub(super) fn first_page(
        &mut self,
        view: View,
        from_secs: Option<i64>,
        (source, mirror): (&Source, &mut Mirror),
        at: Moment,
    ) -> Option<Page> {
        let spans = if view == View::Mirror { &self.mirror_spans } else { &self.live_spans };
        let widens = self.broken != Some(Broken::NoWidening);
        let wider = from_secs.map(|secs| if widens { spans.widen(secs) } else { secs });
        self.widened += usize::from(wider != from_secs);
        let token = match view {
            View::Mirror => {
                mirror.state_secs()?;
                let times = mirror.begin_list(at.our_secs);
                Token::Mirror { from_secs: wider.unwrap_or(i64::MIN), times, after: None }
            }
            View::LiveThenMirror if at.is_answering => {
                let mark = HarvestMark::new(&source.clocks(at.now_secs, at.our_secs), source.granularity);
                let state = ListState::new(mark.from_secs());
                Token::Source {
                    from_secs: wider,
                    list: source.list(wider),
                    state,
                    is_delivered: [false; RECORDS],
                }
            }
            View::LiveThenMirror => self.fail_over(wider, source, mirror, at, None)?,
        };
        self.page(token, (source, mirror), at)
    }

    /// Answers a request with a token; `None` for a failure.
    pub(super) fn page(
        &mut self,
        token: Token,
        (source, mirror): (&Source, &mut Mirror),
        at: Moment,
    ) -> Option<Page> {
        match token {
            Token::Source { from_secs, state, is_delivered, .. } if !at.is_answering => {
                self.failovers_inside_lists += 1;
                let rest = self.fail_over(from_secs, source, mirror, at, Some((state, is_delivered)))?;
                self.page(rest, (source, mirror), at)
            }
            Token::Source { from_secs, mut list, state, mut is_delivered } => {
                let Some(items) = source.page_of_proxy(&mut list) else {
                    let failing = Moment { is_answering: false, ..at };
                    let token = Token::Source { from_secs, list, state, is_delivered };
                    return self.page(token, (source, mirror), failing);
                };
                items.iter().for_each(|&(id, _)| is_delivered[id] = true);
                let clocks = source.clocks(at.now_secs, at.our_secs);
                let date_secs = clocks.response_date_secs?;
                let last_stamp_secs = last_stamp(&items);
                self.live_spans.record(self.span(state, last_stamp_secs.max(Some(date_secs)), at));
                let is_last = list.is_at_end();
                let rest = Token::Source { from_secs, list, state, is_delivered };
                Some(Page { items, date_secs, last_stamp_secs, token: (!is_last).then_some(rest) })
            }
            Token::Failover { from_secs, first, state, date_secs, is_delivered } => {
                let items = mirror.page_by_id(from_secs, first, &is_delivered);
                let last_stamp_secs = last_stamp(&items);
                self.live_spans.record(self.span(state, last_stamp_secs.max(Some(date_secs)), at));
                let first = items.last().map(|(id, _)| id + 1);
                let rest = |first| Token::Failover { from_secs, first, state, date_secs, is_delivered };
                Some(Page { items, date_secs, last_stamp_secs, token: first.map(rest) })
            }
            Token::Mirror { from_secs, times, after } => {
                let found = mirror.page_by_stamp(from_secs, times.until_secs, after);
                let date_secs = times.response_date_secs;
                let after = found.last().map(|&(stamp_secs, id, _)| (stamp_secs, id));
                let items = found.into_iter().map(|(_, id, record)| (id, record)).collect();
                let rest = |after| Token::Mirror { from_secs, times, after: Some(after) };
                let last_stamp_secs = after.map(|(stamp_secs, _)| stamp_secs);
                let state = ListState::new(date_secs);
                self.mirror_spans.record(self.span(state, last_stamp_secs.max(Some(date_secs)), at));
                Some(Page { items, date_secs, last_stamp_secs, token: after.map(rest) })
            }
        }
    }

    /// The rest of a list from the mirror; `None` if the mirror was never complete.
    fn fail_over(
        &mut self,
        from_secs: Option<i64>,
        source: &Source,
        mirror: &Mirror,
        at: Moment,
        begun: Option<(ListState, [bool; RECORDS])>,
    ) -> Option<Token> {
        self.failovers += 1;
        let copied_secs = mirror.state_secs()?;
        let state_secs = if self.broken == Some(Broken::DateIsNow) { at.our_secs } else { copied_secs };
        let of_mirror = ListState::new(state_secs);
        let (state, is_delivered) = begun.map_or((of_mirror, [false; RECORDS]), |(begun, is_delivered)| {
            let is_broken = self.broken == Some(Broken::StateOfTheFirstPage);
            (if is_broken { begun } else { begun.continued_with(of_mirror) }, is_delivered)
        });
        let from_secs = from_secs.map_or(i64::MIN, |secs| source.grained(secs));
        Some(Token::Failover { from_secs, first: 0, state, date_secs: state.secs(), is_delivered })
    }

    /// The span of a page with this latest time.
    fn span(&self, state: ListState, latest_secs: Option<i64>, at: Moment) -> ServedSpan {
        let latest_secs = latest_secs.unwrap_or(state.secs());
        let span = state.span(latest_secs, at.our_secs);
        match self.broken {
            Some(Broken::SpansWithoutClockError) => {
                ServedSpan { until_secs: at.our_secs.max(latest_secs), ..span }
            }
            _ => span,
        }
    }
}

/// The highest datestamp of the source.
fn last_stamp(items: &Items) -> Option<i64> {
    items.iter().map(|(_, record)| record.stamp_secs).max()
}
