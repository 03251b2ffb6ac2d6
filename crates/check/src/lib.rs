//! Checks a repository against the rules of OAI-PMH 2.0, as the official validator and BASE's OVAL
//! do, and against further rules.
//!
//! [`run`] decides which requests are sent; `requester` sends them one after the other. Pure
//! functions in `judge` judge the responses. A [`Report`] contains the worst verdict for each rule in
//! [`RULES`]; a [`Profile`] limits it to the rules of one registry. This crate does not use the repair
//! engine; quick-xml reads the documents.

mod exchange;
mod findings;
mod headers;
mod html_page;
mod judge;
mod payload_schemas;
mod profiles;
mod report;
mod requester;
mod rules;
mod tree;

pub use exchange::{CheckRequest, Progress};
pub use findings::{Finding, Verdict};
pub use payload_schemas::{PayloadSchemas, Validation};
pub use profiles::{Demand, Profile};
pub use report::{Report, to_html, to_json, to_junit};
pub use rules::{RULES, Rule, RuleEntry};

use exchange::{CheckResponse, Received};
use findings::Findings;
use headers::{Header, read_headers};
use judge::compression::CodingsSeen;
use judge::identify::Identity;
use judge::{agreement, compression, envelope, errors, identify, lists, odl, payload, tokens};
use oaimend_base::clock::Clock;
use oaimend_oai::datestamp;
use oaimend_repository::Failure;
use oaimend_upstream::settings::SourceMapping;
use requester::Requester;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// The options of a check.
#[derive(Debug)]
pub struct CheckOptions {
    /// The longest time of the check. After this time it sends no further request; the report says so.
    pub time_max: Duration,
    /// The schemas for the metadata of records. Without them this metadata is not validated.
    pub schemas: Option<PayloadSchemas>,
    /// Whether searches are sent too, to judge the extensions of ODL-Search.
    pub with_searches: bool,
}

/// Checks the source of a mapping.
///
/// Sends about 60 requests and reports each request and each wait to `on_progress` before it begins.
/// Waits a second between requests unless the source is on this machine. An unreachable source is a
/// finding.
///
/// # Errors
///
/// The mapping does not allow to create a client.
pub async fn run(
    mapping: &SourceMapping,
    options: &CheckOptions,
    clock: Arc<dyn Clock>,
    on_progress: &mut (dyn FnMut(Progress<'_>) + Send),
) -> Result<Report, Failure> {
    let run = Run {
        requester: Requester::new(mapping, options.time_max, clock, on_progress)?,
        schemas: options.schemas.as_ref(),
        with_searches: options.with_searches,
        base_url: mapping.base_url.clone(),
        findings: Findings::default(),
        identity: Identity::default(),
        codings: CodingsSeen::default(),
    };
    let secrets = mapping.secrets();
    let mut report = run.check_source().await;
    report.base_url = mapping.masked_base_url();
    // A source can echo its credentials.
    for finding in &mut report.findings {
        finding.received = secrets.mask_text(&finding.received);
    }
    Ok(report)
}

/// The state of a running check.
struct Run<'a> {
    requester: Requester<'a>,
    schemas: Option<&'a PayloadSchemas>,
    with_searches: bool,
    base_url: Url,
    findings: Findings,
    identity: Identity,
    codings: CodingsSeen,
}

impl Run<'_> {
    async fn check_source(mut self) -> Report {
        let identify = self.send(CheckRequest::get(&[("verb", "Identify")])).await;
        let identity = identify::judge(&identify, &self.base_url, &mut self.findings);
        // A source that does not speak OAI-PMH gets no further requests.
        let is_oai = identity.is_some() || identify.looks_like_oai();
        let is_described = identity.is_some();
        self.identity = identity.unwrap_or_default();
        if is_oai {
            self.check_all(is_described).await;
        }
        if self.with_searches && is_described {
            odl::judge_description(&identify, &mut self.findings);
        }
        let Self { requester, base_url, mut findings, identity, codings, .. } = self;
        if is_oai {
            codings.judge(&identity.codings, &mut findings);
        }
        let stopped = requester.stopped;
        let why = |rule| match stopped {
            _ if !is_oai => "Identify was not answered in OAI-PMH",
            Some(stopped) => stopped,
            None => explain_unjudged(rule),
        };
        Report {
            base_url: base_url.into(),
            profile: None,
            findings: findings.into_findings(why),
            requests: requester.requests,
            stopped,
        }
    }

    /// Sends all requests after Identify; `is_described`: Identify returned a description.
    async fn check_all(&mut self, is_described: bool) {
        let formats = self.send(CheckRequest::get(&[("verb", "ListMetadataFormats")])).await;
        lists::judge_formats(&formats, Rule::OaiDc, &mut self.findings);
        let header_pages = self.check_headers().await;
        let record_pages = self.check_records().await;
        agreement::judge_lists(&header_pages, &record_pages, &mut self.findings);
        self.check_payloads(&formats, record_pages.first()).await;
        if self.with_searches {
            self.check_searches(record_pages.first()).await;
        }
        let token = header_pages.first().and_then(tokens::next_token).map(str::to_owned);
        let headers: Vec<Header> = header_pages.iter().chain(&record_pages).flat_map(read_headers).collect();
        // The pages can be long.
        drop((header_pages, record_pages));
        let live = headers.iter().find(|header| !header.is_deleted).cloned();
        self.check_sets(&headers, live.as_ref()).await;
        let mut by_post = Vec::new();
        if is_described {
            by_post.push(CheckRequest::post(&[("verb", "Identify")]));
        }
        if let Some(live) = &live {
            if self.check_item(live).await {
                by_post.push(CheckRequest::post(&get_record(&live.identifier)));
            }
            self.check_windows(live).await;
            self.check_samples(&headers, live).await;
        }
        let valid = errors::ValidArguments {
            identity: &self.identity,
            identifier: live.as_ref().map(|live| live.identifier.as_str()),
            token: token.as_deref(),
        };
        for invalid in errors::invalid_requests(valid) {
            let response = self.send(invalid.request.clone()).await;
            errors::judge(&invalid, &response, &mut self.findings);
        }
        self.check_post(by_post).await;
    }

    /// Sends a request and judges what every response has to fulfil.
    async fn send(&mut self, request: CheckRequest) -> CheckResponse {
        let response = self.send_in_any_format(request).await;
        lists::judge(&response, &self.identity, &mut self.findings);
        response
    }

    /// Sends a request and judges what every response has to fulfil in any format, but no rule for records in oai_dc.
    async fn send_in_any_format(&mut self, request: CheckRequest) -> CheckResponse {
        let response = self.requester.send(request).await;
        self.codings.note(&response);
        compression::judge_header(&response, &mut self.findings);
        envelope::judge(&response, &self.base_url, &mut self.findings);
        response
    }

    /// Requests the first pages of ListIdentifiers.
    async fn check_headers(&mut self) -> Vec<CheckResponse> {
        let first =
            self.send(CheckRequest::get(&[("verb", "ListIdentifiers"), ("metadataPrefix", "oai_dc")])).await;
        let pages = self.follow_pages(first).await;
        if let Some(second) = pages.get(1) {
            let again = self.send(second.request.clone()).await;
            tokens::judge_again(&again, second, &mut self.findings);
        }
        let headers: Vec<Header> = pages.iter().flat_map(read_headers).collect();
        if let Some(first) = pages.first().filter(|first| self.findings.is_judgeable(Rule::LiveRecord, first))
        {
            let is_alive = headers.iter().any(|header| !header.is_deleted);
            let is_open = pages.last().is_some_and(|page| tokens::next_token(page).is_some());
            let received =
                if headers.is_empty() { first.summarize() } else { format!("{} listed", headers.len()) };
            if is_open && !is_alive {
                self.findings.mark_unjudged(
                    Rule::LiveRecord,
                    first,
                    format!("{received}, and the list continues"),
                );
            } else {
                self.findings.judge(Rule::LiveRecord, is_alive, first, received);
            }
        }
        pages
    }

    /// Requests the first pages of ListRecords.
    async fn check_records(&mut self) -> Vec<CheckResponse> {
        let first =
            self.send(CheckRequest::get(&[("verb", "ListRecords"), ("metadataPrefix", "oai_dc")])).await;
        self.follow_pages(first).await
    }

    /// Follows a list from its first page on, up to [`PAGES_MAX`] pages, and judges each page.
    async fn follow_pages(&mut self, first: CheckResponse) -> Vec<CheckResponse> {
        tokens::judge_first(&first, &mut self.findings);
        let mut before = tokens::identifiers(&first);
        let mut pages = vec![first];
        while pages.len() < PAGES_MAX {
            let Some(page) = pages.last() else { break };
            let Some(token) = tokens::next_token(page) else { break };
            let request = CheckRequest::get(&[("verb", page.request.verb()), ("resumptionToken", token)]);
            let next = self.send(request).await;
            tokens::judge_next(&next, &before, &mut self.findings);
            before.extend(tokens::identifiers(&next));
            pages.push(next);
        }
        pages
    }

    /// Validates the first page of ListRecords in each format that has a schema; `in_dc`: the page in oai_dc.
    async fn check_payloads(&mut self, formats: &CheckResponse, in_dc: Option<&CheckResponse>) {
        let Some(schemas) = self.schemas else { return };
        let listed = lists::read_formats(formats);
        let (covered, others): (Vec<_>, Vec<_>) =
            listed.into_iter().partition(|format| schemas.covers(&format.namespace));
        for format in others {
            let received = format!("no schema for {} (\"{}\")", format.prefix, format.namespace);
            self.findings.mark_unjudged(Rule::PayloadSchema, formats, received);
        }
        for format in covered.into_iter().take(FORMATS_MAX) {
            let requested;
            let page = match in_dc {
                Some(in_dc) if format.prefix == "oai_dc" => in_dc,
                _ => {
                    let list = [("verb", "ListRecords"), ("metadataPrefix", format.prefix.as_str())];
                    requested = self.send_in_any_format(CheckRequest::get(&list)).await;
                    &requested
                }
            };
            let validation = match (&page.received, page.verb_element()) {
                (Received::Complete(probed), Some(_)) => schemas.validate(&probed.body).await,
                _ => Validation::Unknown(page.summarize()),
            };
            payload::judge(page, &format.prefix, validation, &mut self.findings);
        }
    }

    /// Searches a word of a record, in several ways.
    async fn check_searches(&mut self, records: Option<&CheckResponse>) {
        let Some(word) = records.and_then(odl::word_to_search) else { return };
        let [both, first, second, zeroth, without_format, sets] = odl::search_requests(&word);
        let responses = odl::SearchResponses {
            both: self.send(both).await,
            first: self.send(first).await,
            second: self.send(second).await,
            zeroth: self.send(zeroth).await,
            without_format: self.send(without_format).await,
            sets: self.send(sets).await,
        };
        odl::judge_searches(&responses, &mut self.findings);
    }

    async fn check_sets(&mut self, headers: &[Header], live: Option<&Header>) {
        let sets = self.send(CheckRequest::get(&[("verb", "ListSets")])).await;
        let listed = lists::judge_sets(&sets, headers, &mut self.findings);
        // A set of a listed record is a better test than a set that may be empty.
        let full = live.and_then(|live| live.sets.first().cloned());
        let has_records = full.is_some();
        if let Some(set) = full.or(listed) {
            let list = [("verb", "ListIdentifiers"), ("metadataPrefix", "oai_dc"), ("set", set.as_str())];
            let response = self.send(CheckRequest::get(&list)).await;
            lists::judge_set(&response, &set, has_records, &mut self.findings);
        }
    }

    /// Requests formats and record of one item; returns whether the record was received.
    async fn check_item(&mut self, live: &Header) -> bool {
        let identifier = live.identifier.as_str();
        let formats = self
            .send(CheckRequest::get(&[("verb", "ListMetadataFormats"), ("identifier", identifier)]))
            .await;
        lists::judge_formats(&formats, Rule::FormatsOfItem, &mut self.findings);
        let record = self.send(CheckRequest::get(&get_record(identifier))).await;
        lists::judge_get_record(&record, live, &mut self.findings);
        record.verb_element().is_some()
    }

    /// Requests lists of the exact datestamp of a record, and of its day.
    async fn check_windows(&mut self, live: &Header) {
        let date = live.datestamp.as_str();
        if !datestamp::is_legal(date.as_bytes()) {
            return;
        }
        let records = self.check_window("ListRecords", date, live, Rule::SelectiveHarvest).await;
        let headers = self.check_window("ListIdentifiers", date, live, Rule::SelectiveHarvest).await;
        agreement::judge_lists(&headers, &records, &mut self.findings);
        if date.len() > 10
            && let Some(day) = date.get(..10)
        {
            self.check_window("ListRecords", day, live, Rule::DayHarvest).await;
        }
    }

    /// Requests lists of the exact datestamps of further records, as an incremental harvest would.
    async fn check_samples(&mut self, headers: &[Header], live: &Header) {
        let mut dates = vec![live.datestamp.clone()];
        for part in SAMPLES {
            let Some(sample) = headers.get(headers.len() * part / 100) else { continue };
            let date = sample.datestamp.clone();
            if datestamp::is_legal(date.as_bytes()) && !dates.contains(&date) {
                self.check_window("ListIdentifiers", &date, sample, Rule::SampledHarvest).await;
                dates.push(date);
            }
        }
    }

    async fn check_window(
        &mut self,
        verb: &'static str,
        date: &str,
        expected: &Header,
        rule: Rule,
    ) -> Vec<CheckResponse> {
        let window = [("verb", verb), ("metadataPrefix", "oai_dc"), ("from", date), ("until", date)];
        let first = self.send(CheckRequest::get(&window)).await;
        let pages = self.follow_pages(first).await;
        lists::judge_window(&pages, date, expected, rule, &mut self.findings);
        pages
    }

    /// Sends requests by POST that succeeded by GET.
    async fn check_post(&mut self, by_post: Vec<CheckRequest>) {
        for request in by_post {
            let response = self.send(request).await;
            if self.findings.is_judgeable(Rule::Post, &response) {
                let holds = response.verb_element().is_some();
                self.findings.judge(Rule::Post, holds, &response, response.summarize());
            }
        }
    }
}

/// Why a rule could not be judged.
fn explain_unjudged(rule: Rule) -> &'static str {
    match rule {
        Rule::RetryAfter => "no request was deferred",
        Rule::ContentEncoding => "no response has a body",
        Rule::Compression => "no response is long enough",
        Rule::SampledHarvest => "all listed records have one datestamp",
        Rule::SameRecords => "no list was received to its end",
        Rule::DcLanguage => "no record has a language",
        Rule::PayloadSchema => "no schemas were named with --schema-dir",
        Rule::OpenaireFields => "no record of the set openaire was listed",
        Rule::OdlSearch | Rule::OdlSets => "no record has a title whose words can be searched",
        Rule::OdlHits | Rule::OdlRanges | Rule::OdlFormat => "no search found a record",
        Rule::OaiIdentifier => "Identify describes no identifiers",
        Rule::TooFine => "the granularity is not in days",
        Rule::DayHarvest => "the granularity is not in seconds",
        Rule::DeletedStatus => "no deleted record was listed",
        Rule::ExpirationDate => "no resumptionToken has an expirationDate",
        Rule::FirstCursor | Rule::NextCursor => "no resumptionToken has a cursor",
        Rule::CompleteListSize => "no resumptionToken has a completeListSize",
        Rule::LastToken => "no list was followed to its end",
        Rule::OneToken | Rule::TokenWorks | Rule::TokenAgain | Rule::PageSize | Rule::ListSize => {
            "no list had a second page"
        }
        _ => "no response shows it",
    }
}

fn get_record(identifier: &str) -> [(&'static str, &str); 3] {
    [("verb", "GetRecord"), ("identifier", identifier), ("metadataPrefix", "oai_dc")]
}

/// The number of formats whose records are validated.
const FORMATS_MAX: usize = 10;
/// The number of pages that are followed in a list.
const PAGES_MAX: usize = 3;
/// The positions of sampled records among all received headers, in per cent. The headers of ListIdentifiers come first.
const SAMPLES: [usize; 3] = [10, 30, 49];
