//! Requests the description, the formats and the first records of a source, through the repairs that serve it later.

use crate::config::Mapping;
use oaimend_base::clock::{self, Clock};
use oaimend_mirror::harvest::read_formats;
use oaimend_mirror::view::identify::StoredIdentify;
use oaimend_oai::{ErrorCode, Request, Verb};
use oaimend_repair::RepairId;
use oaimend_repository::{
    Event, Failure, HarvesterTraits, Reason, Repository as _, RepositoryRequest, ResponseSummary,
};
use oaimend_store::Store;
use oaimend_upstream::settings::Method;
use oaimend_upstream::{LiveRepository, SourceClients};
use std::sync::Arc;
use std::time::Duration;
use url::Host;

/// The shortest time between two requests to a source on another machine.
const GAP: Duration = Duration::from_secs(1);
/// Longest response to Identify and ListMetadataFormats that is read, in bytes. A list of records is counted only.
const DOCUMENT_BYTES_MAX: usize = 4 << 20;
/// Maximum number of requests of a probe, each of which is retried within its share of the time.
const REQUESTS_MAX: u32 = 4;
/// A source whose response takes longer needs another timeout than the default.
pub(super) const SLOW_RESPONSE: Duration = Duration::from_secs(10);
/// The format that every repository has to support.
const OAI_DC: &str = "oai_dc";

/// Probes sources, one after the other or at the same time.
#[derive(Debug)]
pub struct Prober {
    store: Store,
    clients: SourceClients,
    clock: Arc<dyn Clock>,
    /// The longest time for all requests to a source.
    time_max: Duration,
}

/// What the responses of a source have shown.
#[derive(Debug, Default)]
pub struct Findings {
    /// Whether the source refuses GET and accepts POST.
    pub needs_post: bool,
    /// The protocol version of its responses: `2.0`, `1.1` or `1.0`.
    pub version: Option<&'static str>,
    /// Its description.
    pub identify: Option<StoredIdentify>,
    /// The prefixes of its formats.
    pub formats: Vec<String>,
    /// The format of the requested list of records; `None` if no list was requested.
    pub prefix: Option<String>,
    /// The records on the first page of the list.
    pub records: u64,
    /// `completeListSize` of the list.
    pub list_size: Option<u64>,
    /// The error of the list, such as `noRecordsMatch`.
    pub list_error: Option<ErrorCode>,
    /// The repairs in all responses, each with its number.
    pub repairs: Vec<(RepairId, u64)>,
    /// The records on the first page without a safe repair.
    pub quarantined: u64,
    /// Why the first page ends early, if it does. A harvester continues it with a token of oaimend.
    pub continued: Option<Failure>,
    /// The time of the slowest response.
    pub slowest: Duration,
    /// The first request that failed, and why.
    pub failure: Option<(Verb, Failure)>,
}

impl Findings {
    /// Whether Identify, the formats and the first page of records were received.
    pub fn works(&self) -> bool {
        self.failure.is_none()
    }

    /// The number of all repairs.
    pub fn repair_count(&self) -> u64 {
        self.repairs.iter().map(|(_, count)| count).sum()
    }

    fn add_repairs(&mut self, summary: &ResponseSummary) {
        for (id, count) in summary.items.repairs().iter().filter(|(id, _)| !id.is_rewrite()) {
            match self.repairs.iter_mut().find(|(known, _)| *known == id) {
                Some((_, sum)) => *sum += count,
                None => self.repairs.push((id, count)),
            }
        }
    }
}

/// A complete response.
struct Received {
    body: String,
    summary: ResponseSummary,
}

impl Prober {
    /// Probes with the state in this store, which no server uses.
    pub fn new(store: Store, clock: Arc<dyn Clock>, time_max: Duration) -> Self {
        let clients = SourceClients::new(store.static_files.clone());
        Self { store, clients, clock, time_max }
    }

    /// Probes the source of a mapping, with a second between two requests unless it is on this machine. A source that
    /// refuses GET is requested by POST.
    pub async fn probe(&self, mapping: &Mapping) -> Findings {
        let started = clock::uptime();
        let by_get = self.probe_within(mapping, self.time_max).await;
        if !by_get
            .failure
            .as_ref()
            .is_some_and(|(verb, failure)| *verb == Verb::Identify && refuses_get(failure))
        {
            return by_get;
        }
        let left = self.time_max.saturating_sub(clock::uptime().saturating_sub(started));
        let mut mapping = mapping.clone();
        mapping.source_mut().quirks.method = Method::Post;
        let by_post = self.probe_within(&mapping, left).await;
        if by_post.identify.is_some() { Findings { needs_post: true, ..by_post } } else { by_get }
    }

    async fn probe_within(&self, mapping: &Mapping, time: Duration) -> Findings {
        let mut findings = Findings::default();
        let mut verb = Verb::Identify;
        let probing = self.probe_all(mapping, &mut findings, &mut verb);
        if tokio::time::timeout(time, probing).await.is_err() {
            let secs = self.time_max.as_secs();
            let details = format!("the requests to the source took longer than {secs} s together");
            findings.failure = Some((verb, Failure::new(Reason::ResponseTimeout, details)));
        }
        findings
    }

    async fn probe_all(&self, mapping: &Mapping, findings: &mut Findings, verb: &mut Verb) {
        let probed = self.probe_verbs(mapping, findings, verb).await;
        findings.failure = probed.err().map(|failure| (*verb, failure));
    }

    /// Sends the requests in order; `verb` is that of the current one.
    async fn probe_verbs(
        &self,
        mapping: &Mapping,
        findings: &mut Findings,
        verb: &mut Verb,
    ) -> Result<(), Failure> {
        let source = self.source(mapping)?;
        let identify = receive(&source, Request::identify(), findings).await?;
        findings.version = identify.summary.page.version;
        findings.identify = StoredIdentify::read(&identify.body);
        *verb = Verb::ListMetadataFormats;
        let formats = receive(&source, Request::list_metadata_formats(None), findings).await?;
        findings.formats = read_formats(&formats.body).into_iter().map(|format| format.prefix).collect();
        *verb = Verb::ListRecords;
        let has_oai_dc =
            findings.formats.is_empty() || findings.formats.iter().any(|prefix| prefix == OAI_DC);
        let prefix = if has_oai_dc { OAI_DC.to_owned() } else { findings.formats[0].clone() };
        let list = receive(&source, Request::list_records(&prefix, None, None, None), findings).await;
        findings.prefix = Some(prefix);
        let Received { summary, .. } = list?;
        findings.records = summary.items.sent();
        findings.quarantined = summary.items.quarantined();
        (_, findings.list_size) = summary.page.progress;
        findings.list_error = summary.page.error;
        findings.continued = summary.end.continued;
        Ok(())
    }

    fn source(&self, mapping: &Mapping) -> Result<LiveRepository, Failure> {
        let mut source = mapping.clone();
        let source = source.source_mut();
        if !is_on_this_machine(source.base_url.host()) {
            source.politeness.gap = source.politeness.gap.max(GAP);
        }
        // Time is left for the other requests.
        let limits = &mut source.limits;
        limits.first_record_timeout = limits.first_record_timeout.min(self.time_max / REQUESTS_MAX);
        let mapping = Arc::new(source.clone());
        let client = self.clients.client_for(&mapping)?;
        Ok(LiveRepository { mapping, client, store: self.store.clone(), clock: Arc::clone(&self.clock) })
    }
}

/// Whether a source may accept POST after this failure. Other failures pass, and a wrong method would stay.
fn refuses_get(failure: &Failure) -> bool {
    match failure.reason {
        Reason::Status => matches!(failure.received_status, Some(400 | 403 | 404 | 405 | 501)),
        Reason::NotOai(_) => true,
        _ => false,
    }
}

/// Sends a request, and reads the response to its end.
async fn receive(
    source: &LiveRepository,
    request: Request,
    findings: &mut Findings,
) -> Result<Received, Failure> {
    let started = clock::uptime();
    let echo = Arc::new(request.to_echo(source.mapping.base_url.as_str()));
    let is_list = request.verb() == Verb::ListRecords;
    let mut events = source.answer(RepositoryRequest {
        request,
        echo,
        via: "1.1 oaimend".to_owned(),
        harvester: HarvesterTraits::default(),
        in_one_piece: false,
        reports_records: false,
    });
    let mut body = Vec::new();
    let received = loop {
        match events.next().await {
            Some(Event::Body(piece)) => {
                if !is_list && body.len() + piece.len() <= DOCUMENT_BYTES_MAX {
                    body.extend_from_slice(&piece);
                }
            }
            Some(Event::End(summary)) => break Ok(summary),
            Some(Event::Failed(failure, summary)) => {
                findings.add_repairs(&summary);
                break Err(failure);
            }
            Some(Event::Head(_) | Event::Records(_) | Event::Quarantined(_)) => {}
            None => break Err(Failure::new(Reason::ConnectionLost, "the session with the source stopped")),
        }
    };
    findings.slowest = findings.slowest.max(clock::uptime().saturating_sub(started));
    let summary = *received?;
    findings.add_repairs(&summary);
    Ok(Received { body: String::from_utf8_lossy(&body).into_owned(), summary })
}

fn is_on_this_machine(host: Option<Host<&str>>) -> bool {
    match host {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}
