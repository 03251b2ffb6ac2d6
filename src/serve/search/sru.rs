//! Answers SRU requests from the index and the mirror.
//!
//! The index says which records match, and the mirror has their metadata. A record that has changed since it was indexed
//! is sent as it is now. One that was deleted or damaged since, or that the mirror does not serve, is a diagnostic in its
//! place, so that positions stay.

use crate::serve::pages::records::collection::ServedFormats;
use crate::serve::pages::rendering::{RenderLimits, RenderMemory};
use crate::serve::response::{RESPONSE_SECURITY_POLICY, Response};
use crate::serve::search::{SearchService, searched_repositories};
use crate::serve::served::ServedRepositories;
use oaimend_pages::html::NoResponseReason;
use oaimend_search::{
    Hit, IndexError, RankedHits, RecordFilter, SearchHits, SearchIndex, ValueCount, Values, fold_value,
};
use oaimend_sru::{
    Database, Diagnostic, DiagnosticCode, Envelope, FoundRecord, Operation, RecordSchema, Request,
    ResultList, ScannedTerm,
};
use oaimend_store::{Identifier, Prefix, RecordStatus, RepositoryId};
use url::Url;

/// The path of the SRU server, without slashes around it.
const PATH: &str = "_sru";
/// Length of all metadata after which a response takes no further record, in bytes.
const METADATA_BYTES_MAX: usize = 16 << 20;

/// The response to a request: its query string, with the form of a POST appended.
pub(crate) async fn answer(served: &ServedRepositories, rendering: &RenderLimits, query: &[u8]) -> Response {
    let (envelope, operation) = match Request::parse(query) {
        Ok(request) => (request.envelope, Ok(request.operation)),
        Err(refused) => (refused.envelope, Err(refused.diagnostic)),
    };
    let Some(search) = served.search() else {
        let text = "this server has no search: search.enabled is false, or no repository is mirrored";
        let diagnostic = Diagnostic::new(DiagnosticCode::SystemTemporarilyUnavailable, text);
        return respond(404, &envelope, envelope.failure(&diagnostic));
    };
    let server = SruServer { served, rendering, search, envelope: &envelope };
    let xml = match operation {
        Ok(operation) => server.answer(operation).await,
        Err(diagnostic) => Ok(envelope.failure(&diagnostic)),
    };
    match xml {
        Ok(xml) => respond(200, &envelope, xml),
        Err(error) => failed(&envelope, &error),
    }
}

/// The response that the index does not answer.
fn failed(envelope: &Envelope, error: &IndexError) -> Response {
    let Some(failure) = error.failure() else {
        let diagnostic = Diagnostic::new(DiagnosticCode::CannotProcessQuery, error.to_string());
        return respond(200, envelope, envelope.failure(&diagnostic));
    };
    let diagnostic = Diagnostic::new(DiagnosticCode::SystemTemporarilyUnavailable, failure.text());
    let response = respond(failure.status(), envelope, envelope.failure(&diagnostic));
    match failure.retry_after() {
        Some(secs) => response.with("Retry-After", secs.to_string()),
        None => response,
    }
}

/// A response that may change with each commit of the mirror.
fn respond(status: u16, envelope: &Envelope, xml: String) -> Response {
    Response::new(status, envelope.content_type(), xml)
        .with("Cache-Control", "no-cache".to_owned())
        .with("Content-Security-Policy", RESPONSE_SECURITY_POLICY.to_owned())
        .with("Vary", "Accept-Encoding".to_owned())
        .compressible()
}

/// What answers a legal request.
struct SruServer<'a> {
    served: &'a ServedRepositories,
    rendering: &'a RenderLimits,
    search: &'a SearchService,
    envelope: &'a Envelope,
}

impl SruServer<'_> {
    async fn answer(&self, operation: Operation) -> Result<String, IndexError> {
        match operation {
            Operation::Explain => Ok(self.envelope.explain(&database(&self.served.public_url))),
            Operation::SearchRetrieve { search, offset, count_max, schema } => {
                let hits = SearchHits {
                    query: search.query,
                    filter: self.filter(),
                    ranking: search.ranking,
                    offset,
                    count_max,
                    with_facets: false,
                };
                let found = self.search.searches.run(move |index| index.search(&hits)).await?;
                let total = found.total.records;
                if total > 0 && found.hits.is_empty() && offset as u64 >= total {
                    let details = format!("1 to {total}");
                    let diagnostic = Diagnostic::new(DiagnosticCode::FirstRecordPositionOutOfRange, details);
                    return Ok(self.envelope.failure(&diagnostic));
                }
                // Held until the response is written.
                let mut memory = self.rendering.memory();
                let list = self.list(found, offset, schema, &mut memory).await;
                Ok(self.envelope.records(schema, &list))
            }
            Operation::Scan { scan, includes_term, count_max } => {
                let term = fold_value(&scan.term);
                let values = Values {
                    field: scan.field,
                    filter: self.filter(),
                    start: String::new(),
                    after: (!term.is_empty()).then(|| term.clone()),
                    count_max,
                };
                let list = move |index: &SearchIndex| scanned(index, values, term, includes_term);
                let values = self.search.searches.run(list).await?;
                let terms = values
                    .into_iter()
                    .map(|ValueCount { value, records, .. }| ScannedTerm { value, records });
                Ok(self.envelope.terms(&terms.collect::<Vec<_>>()))
            }
        }
    }

    /// One record for each item of the searched repositories.
    fn filter(&self) -> RecordFilter {
        RecordFilter { repositories: Some(searched_repositories(&self.served.repositories)), prefix: None }
    }

    /// The records of hits, as far as there is memory for them.
    async fn list(
        &self,
        found: RankedHits,
        offset: usize,
        schema: RecordSchema,
        memory: &mut RenderMemory,
    ) -> ResultList {
        let RankedHits { hits, total, .. } = found;
        let (mut records, mut bytes) = (Vec::with_capacity(hits.len()), 0);
        let mut served = ServedFormats::default();
        for hit in hits {
            if bytes > METADATA_BYTES_MAX {
                break;
            }
            let mut metadata = self.metadata(&hit, schema, &mut served).await;
            bytes += metadata.as_ref().map_or(0, String::len);
            // A response can be longer than what `reserve` grants to one; `METADATA_BYTES_MAX` limits it.
            if memory.reserve(bytes) == Err(NoResponseReason::Busy) {
                if !records.is_empty() {
                    break;
                }
                metadata = Err(Diagnostic::new(DiagnosticCode::RecordTemporarilyUnavailable, ""));
            }
            records.push(FoundRecord { identifier: hit.identifier, metadata });
        }
        ResultList { total: total.records, is_estimate: total.is_estimate, offset, records }
    }

    /// The metadata of a found record in a schema: its own, or that of another format of the item. The mirror serves some
    /// formats of the item only, or none any more.
    async fn metadata(
        &self,
        hit: &Hit,
        schema: RecordSchema,
        served: &mut ServedFormats,
    ) -> Result<String, Diagnostic> {
        let does_not_exist = || Diagnostic::new(DiagnosticCode::RecordDoesNotExist, "");
        let (mirror, repository) = (&self.served.store.mirror, RepositoryId(&hit.repository));
        let identifier = Identifier(&hit.identifier);
        let mapping = self.served.mirrored(&hit.repository).ok_or_else(does_not_exist)?;
        let served = served.of(&**mirror, &mapping).await.map_err(unavailable)?;
        let mut formats = mirror.formats_of_item(repository, identifier).await.map_err(unavailable)?;
        formats.retain(|(prefix, _)| served.contains(prefix));
        if formats.iter().all(|(_, status)| *status == RecordStatus::Deleted) {
            return Err(does_not_exist());
        }
        for (prefix, _) in formats.iter().filter(|(prefix, _)| schema.may_have_prefix(prefix)) {
            let record = mirror.record(repository, Prefix(prefix), identifier).await.map_err(unavailable)?;
            let bytes = record.map(|record| record.bytes).unwrap_or_default();
            let length = bytes.len();
            let read = move || std::str::from_utf8(&bytes).ok().and_then(|record| schema.metadata(record));
            if let Some(metadata) = self.rendering.run(length, read).await.map_err(unavailable)? {
                return Ok(metadata);
            }
        }
        Err(Diagnostic::new(DiagnosticCode::RecordNotAvailableInThisSchema, schema.uri()))
    }
}

/// The values from a term on, or after it.
fn scanned(
    index: &SearchIndex,
    values: Values,
    term: String,
    includes_term: bool,
) -> Result<Vec<ValueCount>, IndexError> {
    let mut found = Vec::new();
    if includes_term && !term.is_empty() {
        // The value that equals the term is the first of those that begin with it.
        let equal = Values { start: term.clone(), after: None, count_max: 1, ..values.clone() };
        found = index.values(&equal)?;
        found.retain(|value| value.folded == term);
    }
    let count_max = values.count_max - found.len();
    if count_max > 0 {
        found.extend(index.values(&Values { count_max, ..values })?);
    }
    Ok(found)
}

fn unavailable(error: impl std::error::Error) -> Diagnostic {
    tracing::warn!(error = %error, "a found record cannot be read");
    Diagnostic::new(DiagnosticCode::RecordTemporarilyUnavailable, "")
}

/// Where this server is, from its public URL.
fn database(public_url: &str) -> Database {
    let url = Url::parse(public_url).ok();
    let url = url.as_ref();
    let folder = url.map(|url| url.path().trim_matches('/')).unwrap_or_default();
    Database {
        transport: url.map_or("http", Url::scheme).to_owned(),
        host: url.and_then(Url::host_str).unwrap_or_default().to_owned(),
        port: url.and_then(Url::port_or_known_default).unwrap_or(80),
        path: if folder.is_empty() { PATH.to_owned() } else { format!("{folder}/{PATH}") },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_database_is_the_path_of_the_server() {
        let place = |url| {
            let Database { transport, host, port, path } = database(url);
            format!("{transport} {host} {port} {path}")
        };
        assert_eq!(place("https://oai.example"), "https oai.example 443 _sru");
        assert_eq!(place("http://[::1]:8080/a/b"), "http [::1] 8080 a/b/_sru");
    }
}
