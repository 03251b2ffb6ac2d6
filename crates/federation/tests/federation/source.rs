//! Sources in memory.

use crate::world::START_SECS;
use oaimend_base::clock::Clock;
use oaimend_oai::datestamp::{Granularity, from_secs, to_last_second, to_secs};
use oaimend_oai::{Argument, ErrorCode, Request, UnixSecs, Verb, error_response, response_head};
use oaimend_repository::{
    AnsweredBy, DeliveredRecord, Event, EventStream, Failure, ListAge, Reason, Repository, RepositoryRequest,
    ResponseHead, ResponseSummary,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;

/// How often other tasks run before a deadline of a late clock is over.
pub(crate) const LATE_YIELDS: usize = 100;
/// How often other tasks run before a slow source answers.
const SLOW_YIELDS: usize = LATE_YIELDS * 3 / 5;

/// How a source fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Fault {
    #[default]
    Nothing,
    /// Every request.
    Down,
    /// Every page breaks off after its first record.
    BreaksOff,
    /// Every request with a token.
    LosesTokens,
    /// The token of a page is that of the page itself.
    Loops,
    /// Every response takes for ever.
    Hangs,
    /// Every response takes more than half of the time until deadlines of a late clock.
    IsSlow,
    /// It delivers no record alone.
    HasListsOnly,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) secs: i64,
    pub(crate) version: u64,
    pub(crate) sets: Vec<String>,
    pub(crate) is_deleted: bool,
}

/// A source.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) records: BTreeMap<String, Record>,
    /// The older records that its mirror answers with, and their time.
    pub(crate) mirror: Option<(i64, BTreeMap<String, Record>)>,
    pub(crate) granularity: Granularity,
    pub(crate) deleted_record: &'static str,
    pub(crate) formats: Vec<&'static str>,
    pub(crate) sets: Vec<&'static str>,
    pub(crate) page_records: usize,
    /// The time by which its clock is ahead.
    pub(crate) lead_secs: i64,
    pub(crate) fault: Fault,
    pub(crate) requests: Vec<String>,
}

impl Default for Source {
    fn default() -> Self {
        Self {
            records: BTreeMap::new(),
            mirror: None,
            granularity: Granularity::Second,
            deleted_record: "persistent",
            formats: vec!["oai_dc"],
            sets: Vec::new(),
            page_records: 2,
            lead_secs: 0,
            fault: Fault::Nothing,
            requests: Vec::new(),
        }
    }
}

/// A page of a source, before it is written.
enum Page {
    Error(ErrorCode),
    Content { content: String, items: u64, token: Option<String>, latest: Option<String> },
}

impl Source {
    /// A source with records `a1`, `a2` and so on, of one second each.
    pub(crate) fn with(name: &str, count: i64) -> Self {
        let mut source = Self::default();
        for number in 1..=count {
            source.change(&format!("{name}{number}"), START_SECS - 10_000 + number, 1);
        }
        source
    }

    pub(crate) fn change(&mut self, identifier: &str, secs: i64, version: u64) {
        let record = Record { secs, version, sets: Vec::new(), is_deleted: false };
        self.records.insert(identifier.to_owned(), record);
    }

    fn shown(&self) -> &BTreeMap<String, Record> {
        self.mirror.as_ref().map_or(&self.records, |(_, records)| records)
    }

    fn date_secs(&self, now_secs: i64) -> i64 {
        self.mirror.as_ref().map_or(now_secs + self.lead_secs, |(secs, _)| *secs)
    }

    fn stamp(&self, secs: i64) -> String {
        from_secs(UnixSecs(secs), self.granularity)
    }

    fn item(&self, verb: Verb, identifier: &str, record: &Record) -> String {
        let status = if record.is_deleted { " status=\"deleted\"" } else { "" };
        let sets: String = record.sets.iter().map(|set| format!("<setSpec>{set}</setSpec>")).collect();
        let stamp = self.stamp(record.secs);
        let header = format!(
            "<header{status}><identifier>{identifier}</identifier><datestamp>{stamp}</datestamp>{sets}</header>"
        );
        if verb == Verb::ListIdentifiers {
            return header;
        }
        let metadata = if record.is_deleted {
            String::new()
        } else {
            format!("<metadata><v xmlns=\"urn:v\">{}</v></metadata>", record.version)
        };
        format!("<record>{header}{metadata}</record>")
    }

    fn answer(&self, request: &Request, echo_url: &str, now_secs: i64) -> Page {
        let whole = |content: String| Page::Content { content, items: 1, token: None, latest: None };
        let argument = |name| request.argument(name);
        match request.verb() {
            Verb::Identify => whole(format!(
                "<repositoryName>n</repositoryName><baseURL>{echo_url}</baseURL><protocolVersion>2.0</protocolVersion>\
                 <adminEmail>a@x.example</adminEmail><earliestDatestamp>{}</earliestDatestamp>\
                 <deletedRecord>{}</deletedRecord><granularity>{}</granularity>",
                self.stamp(START_SECS - 100_000),
                self.deleted_record,
                self.granularity.name()
            )),
            Verb::ListMetadataFormats => match argument(Argument::Identifier) {
                Some(identifier) if !self.shown().contains_key(identifier) => Page::Error(ErrorCode::IdDoesNotExist),
                _ => whole(self.formats.iter().map(|prefix| format!(
                    "<metadataFormat><metadataPrefix>{prefix}</metadataPrefix><schema>http://x.example/{prefix}.xsd</schema>\
                     <metadataNamespace>urn:{prefix}</metadataNamespace></metadataFormat>"
                )).collect()),
            },
            Verb::ListSets if self.sets.is_empty() => Page::Error(ErrorCode::NoSetHierarchy),
            Verb::ListSets => self.sets_from(request.request_token().parse().unwrap_or(0)),
            Verb::GetRecord if self.fault == Fault::HasListsOnly => Page::Error(ErrorCode::IdDoesNotExist),
            Verb::GetRecord => {
                let identifier = argument(Argument::Identifier).unwrap_or_default();
                match self.shown().get(identifier) {
                    None => Page::Error(ErrorCode::IdDoesNotExist),
                    Some(_) if !self.formats.contains(&argument(Argument::MetadataPrefix).unwrap_or_default()) => {
                        Page::Error(ErrorCode::CannotDisseminateFormat)
                    }
                    Some(record) => whole(self.item(Verb::GetRecord, identifier, record)),
                }
            }
            Verb::ListRecords | Verb::ListIdentifiers => self.list(request, now_secs),
        }
    }

    fn sets_from(&self, at: usize) -> Page {
        let shown = self.sets.iter().skip(at).take(self.page_records);
        let content =
            shown.map(|set| format!("<set><setSpec>{set}</setSpec><setName>{set}</setName></set>")).collect();
        let next = at + self.page_records;
        let token = (next < self.sets.len()).then(|| next.to_string());
        Page::Content { content, items: 1, token, latest: None }
    }

    /// A token is the arguments of the list and the position of its last record.
    fn list(&self, request: &Request, _: i64) -> Page {
        let token = request.argument(Argument::ResumptionToken);
        if token.is_some() && self.fault == Fault::LosesTokens {
            return Page::Error(ErrorCode::BadResumptionToken);
        }
        let parts: Vec<String> = match token {
            Some(token) => token.split('|').map(str::to_owned).collect(),
            None => {
                let arguments = [Argument::MetadataPrefix, Argument::Set, Argument::From, Argument::Until];
                let mut parts =
                    arguments.map(|name| request.argument(name).unwrap_or_default().to_owned()).to_vec();
                parts.extend([i64::MIN.to_string(), String::new()]);
                parts
            }
        };
        let [prefix, set, from, until, after_secs, after_id] = parts.try_into().expect("six parts");
        for date in [&from, &until] {
            assert!(date.len() <= self.granularity.len_bytes(), "a source with days refuses {date}");
        }
        if !self.formats.contains(&prefix.as_str()) {
            return Page::Error(ErrorCode::CannotDisseminateFormat);
        }
        if !set.is_empty() && self.sets.is_empty() {
            return Page::Error(ErrorCode::NoSetHierarchy);
        }
        let from_secs = to_secs(&from).map_or(i64::MIN, |secs| secs.0);
        let until_secs = to_last_second(&until).map_or(i64::MAX, |secs| secs.0);
        let after = (after_secs.parse::<i64>().expect("a number"), after_id);
        let mut listed: Vec<_> = self
            .shown()
            .iter()
            .map(|(id, record)| ((record.secs, id.clone()), record))
            .filter(|((secs, _), _)| (from_secs..=until_secs).contains(secs))
            .filter(|(_, record)| set.is_empty() || record.sets.contains(&set))
            .filter(|(position, _)| *position > after)
            .collect();
        listed.sort_by(|one, other| one.0.cmp(&other.0));
        if listed.is_empty() {
            return Page::Error(ErrorCode::NoRecordsMatch);
        }
        let has_more = listed.len() > self.page_records;
        listed.truncate(self.page_records);
        let content = listed.iter().map(|((_, id), record)| self.item(request.verb(), id, record)).collect();
        let last = &listed.last().expect("one record").0;
        let next = format!("{prefix}|{set}|{from}|{until}|{}|{}", last.0, last.1);
        let token = match (self.fault, token) {
            (Fault::Loops, Some(token)) => Some(token.to_owned()),
            _ => has_more.then_some(next),
        };
        let latest = Some(self.stamp(last.0));
        Page::Content { content, items: listed.len() as u64, token, latest }
    }
}

/// A source that answers.
pub(crate) struct SourceRepository {
    pub(crate) id: String,
    pub(crate) sources: Arc<Mutex<BTreeMap<String, Source>>>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Repository for SourceRepository {
    fn answer(&self, request: RepositoryRequest) -> EventStream {
        let (sender, events) = mpsc::channel(4);
        let (id, sources, clock) = (self.id.clone(), Arc::clone(&self.sources), Arc::clone(&self.clock));
        let session = async move {
            let now_secs = clock.now_secs().0;
            let source = {
                let mut sources = sources.lock().unwrap_or_else(PoisonError::into_inner);
                sources.get_mut(&id).map(|source| {
                    source.requests.push(request.request.query().to_owned());
                    source.clone()
                })
            };
            let source = source.unwrap_or(Source { fault: Fault::Down, ..Source::default() });
            if source.fault == Fault::IsSlow {
                for _ in 0..SLOW_YIELDS {
                    tokio::task::yield_now().await;
                }
            }
            for event in written(&source, &request, now_secs) {
                if sender.send(event).await.is_err() {
                    return;
                }
            }
            if source.fault == Fault::Hangs {
                std::future::pending::<()>().await;
            }
        };
        EventStream::new(events, Box::pin(session))
    }
}

/// The events of a response.
fn written(source: &Source, request: &RepositoryRequest, now_secs: i64) -> Vec<Event> {
    let failed = || Event::Failed(Failure::new(Reason::ConnectionRefused, "it is down"), Box::default());
    match source.fault {
        Fault::Down => return vec![failed()],
        Fault::Hangs => return Vec::new(),
        _ => {}
    }
    let date_secs = UnixSecs(source.date_secs(now_secs));
    let date = from_secs(date_secs, Granularity::Second);
    let list = source
        .mirror
        .is_none()
        .then_some(ListAge { state_secs: date_secs.minus(1), response_date_secs: date_secs });
    let head = Event::Head(ResponseHead { answered_by: AnsweredBy::Source(200), length: None, list });
    let mut summary = Box::new(ResponseSummary::default());
    summary.page.response_date = Some(date.clone());
    let (content, token) = match source.answer(&request.request, &request.echo.base_url, now_secs) {
        Page::Error(code) => {
            summary.page.error = Some(code);
            let body = error_response(&request.echo, &date, code, "it says <so>");
            return vec![head, Event::Body(body.into()), Event::End(summary)];
        }
        Page::Content { content, items, token, latest } => {
            summary.items.set_sent(items);
            summary.page.token.clone_from(&token);
            summary.page.latest_datestamp = latest;
            (content, token)
        }
    };
    let verb = request.request.verb().name();
    let is_token_page = request.request.is_resumption();
    let end = match token {
        Some(token) => format!("<resumptionToken completeListSize=\"9\">{token}</resumptionToken>"),
        None if is_token_page => "<resumptionToken/>".to_owned(),
        None => String::new(),
    };
    let start = format!("{}<{verb}>", response_head(&request.echo, &date, true));
    let body = format!("{start}{content}{end}</{verb}></OAI-PMH>\n");
    let mut events = vec![head];
    if request.reports_records {
        events.push(Event::Records(vec![DeliveredRecord {
            identifier: String::new(),
            datestamp: String::new(),
            deleted: false,
            set_specs: Vec::new(),
            xml: content.clone(),
            datestamp_at: 0..0,
            repairs: oaimend_store::RecordRepairs::default(),
        }]));
    }
    if source.fault == Fault::BreaksOff && request.request.verb().is_list() {
        let cut = content.find("</header>").map_or(content.len(), |at| at + 5);
        events.push(Event::Body(body.as_bytes()[..start.len() + cut].to_vec().into()));
        events.push(failed());
        return events;
    }
    // In two pieces, somewhere in the content.
    let half = (start.len() + content.len() / 2).min(body.len());
    let (one, other) = body.as_bytes().split_at(half);
    events.extend([
        Event::Body(one.to_vec().into()),
        Event::Body(other.to_vec().into()),
        Event::End(summary),
    ]);
    events
}
