//! PutRecord of XOAI (Suleman and Fox, "Beyond Harvesting: Digital Library Components as OAI Extensions", "PutRecord").

use super::answer::Written;
use super::problem::{of_error, refuse_folder};
use super::request::split_sets;
use super::writer::Writer;
use crate::config::Mapping;
use crate::serve::oai::mirror_views::view_stores;
use crate::serve::problem::problem;
use crate::serve::response::Response;
use crate::serve::served::ServedRepositories;
use oaimend_base::clock;
use oaimend_deposit::{
    Condition, Deposit, DepositError, LocalRepository, MayWrite, Payload, Stored, WriteTerms,
};
use oaimend_oai::datestamp::{Granularity, from_secs};
use oaimend_oai::{escape, query_pairs};
use std::sync::Arc;
use std::time::SystemTime;

/// Longest query that a response repeats whole, in bytes. A longer one is repeated without the metadata.
const ECHO_BYTES_MAX: usize = 4_096;

/// The arguments of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PutRecord {
    identifier: Option<String>,
    /// Empty for a deletion.
    prefix: String,
    sets: Vec<String>,
    /// `None`: all formats of the record are deleted.
    metadata: Option<Vec<u8>>,
}

impl PutRecord {
    /// The name of the request.
    pub(crate) const VERB: &str = "PutRecord";

    /// Whether a query is such a request. The name of `verb` may be in any case.
    pub(crate) fn is_requested(query: &[u8]) -> bool {
        query_pairs(query)
            .iter()
            .any(|(name, value)| name.eq_ignore_ascii_case(b"verb") && value == Self::VERB.as_bytes())
    }

    /// Reads the arguments.
    ///
    /// # Errors
    ///
    /// They are not legal; the text names the expected ones.
    fn read(query: &[u8]) -> Result<Self, String> {
        let mut read = Self::default();
        let (mut status, mut seen) = (None, Vec::new());
        let mut wrong = None;
        for (name, value) in query_pairs(query) {
            let name = String::from_utf8_lossy(&name).into_owned();
            if seen.contains(&name) {
                wrong.get_or_insert(format!("the argument {name} is repeated"));
                continue;
            }
            let text =
                || String::from_utf8(value.clone()).map_err(|_| format!("the argument {name} is not UTF-8"));
            match name.as_str() {
                "identifier" => read.identifier = Some(text()?).filter(|identifier| !identifier.is_empty()),
                "metadataPrefix" => read.prefix = text()?,
                "sets" => read.sets = split_sets(&text()?),
                "status" => status = Some(text()?),
                "metadata" => read.metadata = Some(value),
                verb if verb.eq_ignore_ascii_case("verb") => {}
                _ => {
                    let expected = "identifier, metadataPrefix, sets, metadata or status";
                    wrong.get_or_insert(format!("the argument {name} is not known; expected {expected}"));
                }
            }
            seen.push(name);
        }
        if status.as_deref() == Some("deleted") {
            // The other arguments are ignored.
            let identifier =
                read.identifier.ok_or("the argument identifier is missing: the record to delete")?;
            return Ok(Self { identifier: Some(identifier), ..Self::default() });
        }
        if let Some(status) = status.filter(|status| !status.is_empty()) {
            return Err(format!("status is \"{status}\"; expected deleted, or no status"));
        }
        match wrong {
            Some(wrong) => Err(wrong),
            None if read.prefix.is_empty() => Err("the argument metadataPrefix is missing".to_owned()),
            None if read.metadata.is_none() => Err("the argument metadata is missing".to_owned()),
            None => Ok(read),
        }
    }
}

/// The response to a PutRecord request with this query.
pub(crate) async fn answer_put_record(
    served: &ServedRepositories,
    mapping: &Arc<Mapping>,
    writer: &Writer,
    query: &[u8],
    started: SystemTime,
) -> Response {
    if let Some(refused) = refuse_folder(mapping) {
        return refused;
    }
    let request = match PutRecord::read(query) {
        Ok(request) => request,
        Err(text) => return problem(400, &text),
    };
    let stores = match view_stores(served).await {
        Ok(stores) => stores,
        Err(failure) => return Response::failed(&failure),
    };
    let Some(repository) = served.deposit.repository(served, stores, mapping) else {
        return problem(404, "the repository is not local any more");
    };
    match put(&repository, &request, writer).await {
        Ok((identifier, stored)) => {
            let base_url = format!("{}/{}", served.public_url, mapping.id());
            let xml = response(&base_url, query, (&identifier, &stored), &clock::utc_datetime(started));
            let (base_url, repository) = (served.public_url.as_str(), mapping.id());
            Written { base_url, repository, identifier: &identifier, stored: &stored }
                .describe(Response::oai(xml))
        }
        // "If any required parameters are missing or in an invalid format, then an HTTP status-code of 400 is returned".
        Err(error) => of_error(&error, 400),
    }
}

async fn put(
    repository: &LocalRepository,
    request: &PutRecord,
    writer: &Writer,
) -> Result<(String, Stored), DepositError> {
    let may_write = writer.may_write();
    let may_write = may_write.as_ref().map(|may_write| may_write as MayWrite<'_>);
    let mut terms = WriteTerms { condition: &Condition::None, may_write };
    let (identifier, is_assigned) = match &request.identifier {
        Some(identifier) => (identifier.clone(), false),
        None => (repository.new_identifier()?, true),
    };
    let stored = match &request.metadata {
        None => repository.delete(None, &identifier, terms).await?,
        Some(metadata) => {
            let deposit = Deposit::new(&identifier, &request.sets, Some(Payload::read(metadata)?))?;
            if is_assigned {
                terms.condition = &Condition::IsNew;
            }
            repository.put(&request.prefix, vec![deposit], terms).await?
        }
    };
    Ok((identifier, stored))
}

/// The response in the form of the paper, with what the archive has assigned in a `responseContainer`.
fn response(base_url: &str, query: &[u8], (identifier, stored): (&str, &Stored), date: &str) -> String {
    let verb = PutRecord::VERB;
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{verb}>\n  <responseDate>{date}</responseDate>\n"
    );
    xml.push_str("  <requestURL>");
    escape(base_url, &mut xml);
    let is_short = query.len() <= ECHO_BYTES_MAX;
    let pieces = query.split(|&byte| byte == b'&').filter(|piece| !piece.is_empty());
    let echoed = pieces.filter(|piece| is_short || !piece.starts_with(b"metadata="));
    for (place, piece) in echoed.enumerate() {
        let separator = if place == 0 { "?" } else { "&" };
        escape(&format!("{separator}{}", String::from_utf8_lossy(piece)), &mut xml);
    }
    xml.push_str("</requestURL>\n  <responseContainer>\n    <identifier>");
    escape(identifier, &mut xml);
    let datestamp = from_secs(stored.stamp_secs, Granularity::Second);
    xml.push_str(&format!(
        "</identifier>\n    <datestamp>{datestamp}</datestamp>\n  </responseContainer>\n</{verb}>\n"
    ));
    xml
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_those_of_the_paper() {
        let query = b"Verb=PutRecord&metadataPrefix=oai_dc&identifier=oai:ABC:123&sets=a,b:c&metadata=<test%20xmlns%3D\"testns\"/>";
        assert!(PutRecord::is_requested(query));
        let read = PutRecord::read(query).expect("the example of the paper");
        assert_eq!(read.identifier.as_deref(), Some("oai:ABC:123"));
        assert_eq!((read.prefix.as_str(), read.sets), ("oai_dc", vec!["a".to_owned(), "b:c".to_owned()]));
        assert_eq!(read.metadata.as_deref(), Some(&b"<test xmlns=\"testns\"/>"[..]));
        let deleted = PutRecord::read(b"verb=PutRecord&status=deleted&identifier=x:1&metadata=a&other=1");
        let expected = PutRecord { identifier: Some("x:1".to_owned()), ..PutRecord::default() };
        assert_eq!(deleted, Ok(expected));
    }

    #[test]
    fn other_arguments_are_not_legal() {
        for (query, expected) in [
            ("verb=PutRecord&metadata=x", "metadataPrefix is missing"),
            ("verb=PutRecord&metadataPrefix=oai_dc", "metadata is missing"),
            ("verb=PutRecord&status=deleted", "identifier is missing"),
            ("verb=PutRecord&metadataPrefix=a&metadata=x&status=gone", "expected deleted"),
            ("verb=PutRecord&metadataPrefix=a&metadata=x&metadata=y", "metadata is repeated"),
            ("verb=PutRecord&metadataPrefix=a&metadata=x&set=y", "set is not known"),
            ("verb=PutRecord&metadataPrefix=%ff&metadata=x", "not UTF-8"),
        ] {
            let error = PutRecord::read(query.as_bytes()).expect_err(query);
            assert!(error.contains(expected), "{query}: {error}");
        }
        assert!(!PutRecord::is_requested(b"verb=ListRecords&x=PutRecord"));
    }

    #[test]
    fn a_long_query_is_repeated_without_the_metadata() {
        let stored = Stored { stamp_secs: oaimend_oai::UnixSecs(0), changed: 1, tag: None, is_new: true };
        let long = format!("verb=PutRecord&metadata={}&identifier=x:1", "a".repeat(ECHO_BYTES_MAX));
        for (query, expected) in [
            (
                "verb=PutRecord&metadata=a",
                "<requestURL>http://x/y?verb=PutRecord&amp;metadata=a</requestURL>",
            ),
            (&long, "<requestURL>http://x/y?verb=PutRecord&amp;identifier=x:1</requestURL>"),
        ] {
            let xml = response("http://x/y", query.as_bytes(), ("x:1", &stored), "2026-01-01T00:00:00Z");
            assert!(xml.contains(expected), "{xml}");
        }
    }
}
