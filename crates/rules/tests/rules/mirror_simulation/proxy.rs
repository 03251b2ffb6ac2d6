//! The simulated proxy: it answers from the source or from the mirror, and records spans.

use oaimend_oai::UnixSecs;
use oaimend_rules::{HarvestMark, ListState, ListTimes, ServedSpan, ServedSpans};

use super::Broken;
use super::mirror::Mirror;
use super::source::{Items, RECORDS, Selection, Source, SourceList};

const HOUR_SECS: i64 = 3_600;

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
    Source {
        selection: Selection,
        list: SourceList,
        state: ListState,
        is_delivered: [bool; RECORDS],
    },
    Failover {
        selection: Selection,
        first: usize,
        state: ListState,
        date_secs: UnixSecs,
        is_delivered: [bool; RECORDS],
    },
    Mirror {
        selection: Selection,
        times: ListTimes,
        after: Option<(UnixSecs, usize)>,
    },
}

/// A response with a page of a list.
#[derive(Debug)]
pub(super) struct Page<T = Token> {
    pub(super) items: Items,
    pub(super) date_secs: UnixSecs,
    /// The highest datestamp of the page.
    pub(super) last_stamp_secs: Option<UnixSecs>,
    /// `None` on the last page.
    pub(super) token: Option<T>,
}

/// The time, and whether the source answers at this time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) now_secs: UnixSecs,
    /// The clock of the proxy.
    pub(super) our_secs: UnixSecs,
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
        selection: Selection,
        (source, mirror): (&Source, &mut Mirror),
        at: Moment,
    ) -> Option<Page> {
        let spans = if view == View::Mirror { &self.mirror_spans } else { &self.live_spans };
        let from_secs = selection.from_secs;
        let wider = from_secs.map(|secs| {
            if self.widens(view, selection) { spans.widen_window(secs, selection.until_secs) } else { secs }
        });
        self.widened += usize::from(wider != from_secs);
        let selection = Selection { from_secs: wider, ..selection };
        let token = match view {
            View::Mirror => {
                mirror.state_of_list(selection.is_of_set)?;
                let times = mirror.begin_list(at.our_secs);
                let until_secs = selection.until_secs.unwrap_or(UnixSecs::MAX).min(times.until_secs);
                let selection = Selection { until_secs: Some(until_secs), ..selection };
                Token::Mirror { selection, times, after: None }
            }
            View::LiveThenMirror if at.is_answering => {
                let mark = HarvestMark::new(&source.clocks(at.now_secs, at.our_secs), source.granularity);
                let state = ListState::new(mark.from_secs());
                Token::Source {
                    selection,
                    list: source.list(selection),
                    state,
                    is_delivered: [false; RECORDS],
                }
            }
            View::LiveThenMirror => self.fail_over(selection, (source, mirror), at, None)?,
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
            Token::Source { selection, state, is_delivered, .. } if !at.is_answering => {
                self.failovers_inside_lists += 1;
                let rest = self.fail_over(selection, (source, mirror), at, Some((state, is_delivered)))?;
                self.page(rest, (source, mirror), at)
            }
            Token::Source { selection, mut list, state, mut is_delivered } => {
                let Some(items) = source.page_of_proxy(&mut list) else {
                    let failing = Moment { is_answering: false, ..at };
                    let token = Token::Source { selection, list, state, is_delivered };
                    return self.page(token, (source, mirror), failing);
                };
                items.iter().for_each(|&(id, _)| is_delivered[id] = true);
                let clocks = source.clocks(at.now_secs, at.our_secs);
                let date_secs = clocks.response_date_secs?;
                let last_stamp_secs = last_stamp(&items);
                self.live_spans.record(self.span(state, last_stamp_secs.max(Some(date_secs)), at));
                let is_last = list.is_at_end();
                let rest = Token::Source { selection, list, state, is_delivered };
                Some(Page { items, date_secs, last_stamp_secs, token: (!is_last).then_some(rest) })
            }
            Token::Failover { selection, first, state, date_secs, is_delivered } => {
                let items = mirror.page_by_id(selection, first, &is_delivered);
                let last_stamp_secs = last_stamp(&items);
                self.live_spans.record(self.span(state, last_stamp_secs.max(Some(date_secs)), at));
                let first = items.last().map(|(id, _)| id + 1);
                let rest = |first| Token::Failover { selection, first, state, date_secs, is_delivered };
                Some(Page { items, date_secs, last_stamp_secs, token: first.map(rest) })
            }
            Token::Mirror { selection, times, after } => {
                let found = mirror.page_by_stamp(selection, after);
                let date_secs = times.response_date_secs;
                let after = found.last().map(|&(stamp_secs, id, _)| (stamp_secs, id));
                let items = found.into_iter().map(|(_, id, record)| (id, record)).collect();
                let rest = |after| Token::Mirror { selection, times, after: Some(after) };
                let last_stamp_secs = after.map(|(stamp_secs, _)| stamp_secs);
                let state = ListState::new(date_secs);
                self.mirror_spans.record(self.span(state, last_stamp_secs.max(Some(date_secs)), at));
                Some(Page { items, date_secs, last_stamp_secs, token: after.map(rest) })
            }
        }
    }

    /// The rest of a list from the mirror; `None` if the mirror was never complete, or does not know the set.
    fn fail_over(
        &mut self,
        selection: Selection,
        (source, mirror): (&Source, &Mirror),
        at: Moment,
        begun: Option<(ListState, [bool; RECORDS])>,
    ) -> Option<Token> {
        self.failovers += 1;
        let copied = mirror.state_of_list(selection.is_of_set)?;
        let is_now = self.broken == Some(Broken::DateIsNow);
        let of_mirror = if is_now { ListState::new(at.our_secs) } else { copied };
        let (state, is_delivered) = begun.map_or((of_mirror, [false; RECORDS]), |(begun, is_delivered)| {
            let is_broken = self.broken == Some(Broken::StateOfTheFirstPage);
            (if is_broken { begun } else { begun.continued_with(of_mirror) }, is_delivered)
        });
        let selection = source.grained_selection(selection);
        Some(Token::Failover { selection, first: 0, state, date_secs: state.secs(), is_delivered })
    }

    /// Whether requests for these times are widened. The responseDate of the source is later than the state of a list.
    fn widens(&self, view: View, selection: Selection) -> bool {
        let is_of_source = view == View::LiveThenMirror && self.broken != Some(Broken::NoWideningForMirrors);
        if selection.continues_from_first_response && !is_of_source {
            return false;
        }
        let secs = |selection: Selection| Some(selection.until_secs?.since(selection.from_secs?));
        match self.broken {
            Some(Broken::NoWidening) => false,
            Some(Broken::NoWideningOfShortWindows) => secs(selection).is_none_or(|secs| secs >= HOUR_SECS),
            _ => true,
        }
    }

    /// The span of a page with this latest time.
    fn span(&self, state: ListState, latest_secs: Option<UnixSecs>, at: Moment) -> ServedSpan {
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
fn last_stamp(items: &Items) -> Option<UnixSecs> {
    items.iter().map(|(_, record)| record.stamp_secs).max()
}
