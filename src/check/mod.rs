//! Holds a repository to the rules of OAI-PMH 2.0, as the official validator
//! and BASE's OVAL do, and some more.
//!
//! [`run`] makes the requests, one after the other; `asker` sends them. What
//! comes is judged by pure functions: `envelope` and `schema` whatever it is,
//! `identify`, `lists`, `tokens` and `errors` by what was asked. Of each rule
//! in [`RULES`] the worst that was seen is told. Nothing is mended here, and the
//! documents are read by quick-xml alone.

mod answer;
mod asker;
mod envelope;
mod errors;
mod findings;
mod identify;
mod lists;
mod rules;
mod schema;
mod tokens;
mod tree;

pub use answer::Asked;
pub use findings::{Finding, Verdict};
pub use rules::{Entry, RULES, Rule};

use crate::clock::Clock;
use crate::config::Mapping;
use crate::oai::datestamp;
use crate::upstream::Failure;
use answer::Answer;
use asker::Asker;
use findings::Findings;
use identify::Identity;
use lists::Header;
use std::sync::Arc;
use url::Url;

/// What a check has found.
#[derive(Clone, Debug)]
pub struct Report {
    /// The base URL that was asked.
    pub base_url: Url,
    /// One for each rule, in the order of [`RULES`].
    pub findings: Vec<Finding>,
    /// How many requests were made.
    pub requests: usize,
}

/// A request that is about to be made.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Its number, from 1.
    pub requests: usize,
    /// What is asked.
    pub asked: &'a Asked,
}

impl Report {
    /// How many rules came out so.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.findings.iter().filter(|finding| finding.verdict == verdict).count()
    }
}

/// Checks the source of a mapping: some 40 requests, each told beforehand, with
/// a second between them unless the source is on this machine. A source that
/// cannot be reached is a finding.
///
/// # Errors
///
/// No client can be made from the mapping.
pub async fn run(
    mapping: &Mapping,
    clock: Arc<dyn Clock>,
    told: &mut (dyn FnMut(Progress<'_>) + Send),
) -> Result<Report, Failure> {
    let run = Run {
        asker: Asker::new(mapping, clock, told)?,
        base_url: mapping.base_url.clone(),
        findings: Findings::default(),
        identity: Identity::default(),
    };
    Ok(run.whole().await)
}

/// A check on its way.
struct Run<'a> {
    asker: Asker<'a>,
    base_url: Url,
    findings: Findings,
    identity: Identity,
}

impl Run<'_> {
    async fn whole(mut self) -> Report {
        let identify = self.ask(Asked::get(&[("verb", "Identify")])).await;
        let identity = identify::judge(&identify, &self.base_url, &mut self.findings);
        // Who does not speak OAI-PMH at all need not be asked forty times.
        let is_spoken = identity.is_some() || identify.looks_like_oai();
        self.identity = identity.unwrap_or_default();
        if is_spoken {
            self.check_all().await;
        }
        let Self { asker, base_url, findings, .. } = self;
        let why = |rule| if is_spoken { unseen(rule) } else { "Identify was not answered in OAI-PMH" };
        Report { base_url, findings: findings.of_each_rule(why), requests: asker.requests }
    }

    async fn check_all(&mut self) {
        let formats = self.ask(Asked::get(&[("verb", "ListMetadataFormats")])).await;
        lists::judge_formats(&formats, Rule::OaiDc, &mut self.findings);
        let mut headers = self.check_headers().await;
        headers.extend(self.check_records().await);
        let live = headers.iter().find(|header| !header.is_deleted).cloned();
        self.check_sets(&headers, live.as_ref()).await;
        let mut by_post = vec![Asked::post(&[("verb", "Identify")])];
        if let Some(live) = &live {
            if self.check_item(live).await {
                by_post.push(Asked::post(&get_record(&live.identifier)));
            }
            self.check_windows(live).await;
        }
        let identifier = live.as_ref().map(|live| live.identifier.as_str());
        for wrong in errors::wrong_requests(&self.identity, identifier) {
            let answer = self.ask(wrong.asked.clone()).await;
            errors::judge(&wrong, &answer, &mut self.findings);
        }
        self.check_post(by_post).await;
    }

    /// Asks, and judges what holds of every answer.
    async fn ask(&mut self, asked: Asked) -> Answer {
        let answer = self.asker.ask(asked).await;
        envelope::judge(&answer, &self.base_url, &mut self.findings);
        lists::judge(&answer, &self.identity, &mut self.findings);
        answer
    }

    /// The first pages of ListIdentifiers; gives their headers.
    async fn check_headers(&mut self) -> Vec<Header> {
        let first = self.ask(Asked::get(&[("verb", "ListIdentifiers"), ("metadataPrefix", "oai_dc")])).await;
        let pages = self.pages(first).await;
        if let Some(second) = pages.get(1) {
            let again = self.ask(second.asked.clone()).await;
            tokens::judge_again(&again, second, &mut self.findings);
        }
        let headers: Vec<Header> = pages.iter().flat_map(lists::headers).collect();
        if let Some(first) = pages.first().filter(|first| self.findings.can_judge(Rule::LiveRecord, first)) {
            let is_alive = headers.iter().any(|header| !header.is_deleted);
            let is_open = pages.last().is_some_and(|page| tokens::next(page).is_some());
            let came = if headers.is_empty() { first.gist() } else { format!("{} listed", headers.len()) };
            if is_open && !is_alive {
                self.findings.unjudged(Rule::LiveRecord, first, format!("{came}, and the list goes on"));
            } else {
                self.findings.judge(Rule::LiveRecord, is_alive, first, came);
            }
        }
        headers
    }

    /// The first pages of ListRecords; gives their headers.
    async fn check_records(&mut self) -> Vec<Header> {
        let first = self.ask(Asked::get(&[("verb", "ListRecords"), ("metadataPrefix", "oai_dc")])).await;
        self.pages(first).await.iter().flat_map(lists::headers).collect()
    }

    /// A list from its first page on, as far as it is followed, each page judged.
    async fn pages(&mut self, first: Answer) -> Vec<Answer> {
        tokens::judge_first(&first, &mut self.findings);
        let mut before = tokens::identifiers(&first);
        let mut pages = vec![first];
        while pages.len() < PAGES_MAX {
            let Some(page) = pages.last() else { break };
            let Some(token) = tokens::next(page) else { break };
            let asked = Asked::get(&[("verb", page.asked.verb()), ("resumptionToken", token)]);
            let next = self.ask(asked).await;
            tokens::judge_next(&next, &before, &mut self.findings);
            before.extend(tokens::identifiers(&next));
            pages.push(next);
        }
        pages
    }

    async fn check_sets(&mut self, headers: &[Header], live: Option<&Header>) {
        let sets = self.ask(Asked::get(&[("verb", "ListSets")])).await;
        let listed = lists::judge_sets(&sets, headers, &mut self.findings);
        // A set that is known to have a record says more than one that may be empty.
        let full = live.and_then(|live| live.sets.first().cloned());
        let is_known_full = full.is_some();
        if let Some(set) = full.or(listed) {
            let list = [("verb", "ListIdentifiers"), ("metadataPrefix", "oai_dc"), ("set", set.as_str())];
            let answer = self.ask(Asked::get(&list)).await;
            lists::judge_set(&answer, &set, is_known_full, &mut self.findings);
        }
    }

    /// Formats and record of one item; gives whether the record came.
    async fn check_item(&mut self, live: &Header) -> bool {
        let identifier = live.identifier.as_str();
        let formats =
            self.ask(Asked::get(&[("verb", "ListMetadataFormats"), ("identifier", identifier)])).await;
        lists::judge_formats(&formats, Rule::FormatsOfItem, &mut self.findings);
        let record = self.ask(Asked::get(&get_record(identifier))).await;
        lists::judge_get_record(&record, live, &mut self.findings);
        record.verb_element().is_some()
    }

    /// Lists of the very date of a record, and of its day.
    async fn check_windows(&mut self, live: &Header) {
        let date = live.datestamp.as_str();
        if !datestamp::is_legal(date.as_bytes()) {
            return;
        }
        self.check_window(date, live, Rule::SelectiveHarvest).await;
        if let Some(day) = date.get(..10).filter(|_| date.len() > 10) {
            self.check_window(day, live, Rule::DayHarvest).await;
        }
    }

    async fn check_window(&mut self, date: &str, live: &Header, rule: Rule) {
        let window = [("verb", "ListRecords"), ("metadataPrefix", "oai_dc"), ("from", date), ("until", date)];
        let first = self.ask(Asked::get(&window)).await;
        let pages = self.pages(first).await;
        lists::judge_window(&pages, date, live, rule, &mut self.findings);
    }

    /// Requests that are answered when they come by GET.
    async fn check_post(&mut self, by_post: Vec<Asked>) {
        for asked in by_post {
            let answer = self.ask(asked).await;
            if self.findings.can_judge(Rule::Post, &answer) {
                let holds = answer.verb_element().is_some();
                self.findings.judge(Rule::Post, holds, &answer, answer.gist());
            }
        }
    }
}

/// Why nothing was seen of a rule.
fn unseen(rule: Rule) -> &'static str {
    match rule {
        Rule::RetryAfter => "no answer was put off",
        Rule::OaiIdentifier => "no description of identifiers",
        Rule::TooFine => "the granularity is not in days",
        Rule::DayHarvest => "the granularity is not in seconds",
        Rule::DeletedStatus => "no deleted record was listed",
        Rule::ExpirationDate => "no resumptionToken says when it expires",
        Rule::FirstCursor | Rule::NextCursor => "no resumptionToken says a cursor",
        Rule::CompleteListSize => "no resumptionToken says how long its list is",
        Rule::LastToken => "no list was followed to its end",
        Rule::OneToken | Rule::TokenWorks | Rule::TokenAgain | Rule::PageSize => "no list had a second page",
        _ => "nothing came that it could be judged by",
    }
}

fn get_record(identifier: &str) -> [(&'static str, &str); 3] {
    [("verb", "GetRecord"), ("identifier", identifier), ("metadataPrefix", "oai_dc")]
}

/// How many pages of a list are followed.
const PAGES_MAX: usize = 3;
