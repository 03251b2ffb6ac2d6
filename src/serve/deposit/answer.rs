//! The responses to requests at the URLs of records.

use super::problem::{of_error, refuse_folder};
use super::request::{DepositKind, DepositRequest, condition_of};
use super::writer::Writer;
use crate::config::Mapping;
use crate::serve::oai::mirror_views::view_stores;
use crate::serve::pages::metadata_of;
use crate::serve::problem::problem;
use crate::serve::response::{RESPONSE_SECURITY_POLICY, Response};
use crate::serve::served::ServedRepositories;
use http::HeaderMap;
use oaimend_deposit::{
    Condition, Deposit, DepositError, EntityTag, LocalRepository, MayWrite, Payload, Stored, WriteTerms,
    read_list,
};
use oaimend_oai::datestamp::{Granularity, from_secs};
use oaimend_pages::record::RecordAddress;
use oaimend_repository::rebase_namespaces::NamespaceScope;
use oaimend_store::RecordStatus;
use serde::Deserialize;
use serde_json::json;

/// The status of a record that is not correct.
const UNPROCESSABLE: u16 = 422;
/// Longest list of records, in bytes.
const LIST_BYTES_MAX: usize = 64 << 20;
/// Longest description of sets, in bytes.
const PATCH_BYTES_MAX: usize = 64 << 10;

/// A record that was written.
pub(crate) struct Written<'a> {
    pub(super) base_url: &'a str,
    pub(super) repository: &'a str,
    pub(super) identifier: &'a str,
    pub(super) stored: &'a Stored,
}

impl DepositRequest {
    /// The longest body, in bytes, with the name of the limit in the configuration.
    pub(crate) fn body_bytes_max(&self) -> (usize, &'static str) {
        match self.kind {
            DepositKind::Put(_) => {
                (self.mapping.source.limits.repair.record_bytes_max, " (record_bytes_max)")
            }
            DepositKind::PutList => (LIST_BYTES_MAX, ""),
            _ => (PATCH_BYTES_MAX, ""),
        }
    }
}

/// The response to a writer of a repository that has a source.
pub(crate) fn refuse_source(mapping: &Mapping) -> Response {
    let text = format!(
        "{} is not a local repository, so its records are written at its source; kind = \"local\" in a mapping makes one",
        mapping.id()
    );
    problem(405, &text).with("Allow", "GET, HEAD".to_owned())
}

/// The response to a request with this body. A request that writes has a writer.
pub(crate) async fn answer(
    served: &ServedRepositories,
    request: &DepositRequest,
    writer: Option<&Writer>,
    headers: &HeaderMap,
    body: &[u8],
) -> Response {
    if request.prefix.is_empty() {
        return problem(400, "the argument metadataPrefix is missing; it names the format of the record");
    }
    if writer.is_some()
        && let Some(refused) = refuse_folder(&request.mapping)
    {
        return refused;
    }
    let stores = match view_stores(served).await {
        Ok(stores) => stores,
        Err(failure) => return Response::failed(&failure),
    };
    let Some(repository) = served.deposit.repository(served, stores, &request.mapping) else {
        return problem(404, "the repository is not local any more");
    };
    let condition = condition_of(headers);
    let may_write = writer.and_then(Writer::may_write);
    let may_write = may_write.as_ref().map(|may_write| may_write as MayWrite<'_>);
    let terms = WriteTerms { condition: &condition, may_write };
    let answered = match &request.kind {
        DepositKind::Read(identifier) => read(&repository, &request.prefix, identifier).await,
        DepositKind::Put(identifier) => put(served, request, (&repository, identifier), body, terms).await,
        DepositKind::Patch(identifier) => {
            patch(served, request, (&repository, identifier), body, terms).await
        }
        DepositKind::Delete(identifier) => delete(served, request, (&repository, identifier), terms).await,
        DepositKind::PutList => put_list(&repository, request, body, terms).await,
    };
    answered.unwrap_or_else(|error| of_error(&error, UNPROCESSABLE))
}

/// The metadata of a record, for those who change it.
async fn read(
    repository: &LocalRepository,
    prefix: &str,
    identifier: &str,
) -> Result<Response, DepositError> {
    let unknown = || DepositError::Unknown(identifier.to_owned());
    let stored = repository.record(prefix, identifier).await?.ok_or_else(unknown)?;
    let datestamp = from_secs(stored.stamp_secs, Granularity::Second);
    if stored.status == RecordStatus::Deleted {
        return Ok(problem(410, &format!("the record is deleted since {datestamp}")));
    }
    // The store has it as an item of a list, which declares some of its namespaces.
    let item = String::from_utf8_lossy(&stored.bytes);
    let record = NamespaceScope::of_own_list().rebase(&item, &NamespaceScope::default());
    let metadata = metadata_of(&record).ok_or_else(unknown)?;
    let document = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{metadata}\n");
    Ok(Response::new(200, "application/xml", document)
        .with("Content-Security-Policy", RESPONSE_SECURITY_POLICY.to_owned())
        .with("Cache-Control", "no-cache".to_owned())
        .with("ETag", EntityTag::of(&stored).to_string())
        .with(DATESTAMP, datestamp))
}

async fn put(
    served: &ServedRepositories,
    request: &DepositRequest,
    (repository, identifier): (&LocalRepository, &str),
    body: &[u8],
    terms: WriteTerms<'_>,
) -> Result<Response, DepositError> {
    let deposit = Deposit::new(identifier, &request.sets, Some(Payload::read(body)?))?;
    let stored = repository.put(&request.prefix, vec![deposit], terms).await?;
    Ok(written(served, request, identifier, &stored))
}

/// The change of a record (RFC 7396): its sets.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetsPatch {
    sets: Vec<String>,
}

async fn patch(
    served: &ServedRepositories,
    request: &DepositRequest,
    (repository, identifier): (&LocalRepository, &str),
    body: &[u8],
    terms: WriteTerms<'_>,
) -> Result<Response, DepositError> {
    let patch: SetsPatch = serde_json::from_slice(body).map_err(|error| {
        DepositError::Unfit(format!("expected JSON such as {{\"sets\": [\"theses\"]}}: {error}"))
    })?;
    let stored = repository.set_sets(&request.prefix, identifier, &patch.sets, terms).await?;
    Ok(written(served, request, identifier, &stored))
}

async fn delete(
    served: &ServedRepositories,
    request: &DepositRequest,
    (repository, identifier): (&LocalRepository, &str),
    terms: WriteTerms<'_>,
) -> Result<Response, DepositError> {
    let stored = repository.delete(Some(&request.prefix), identifier, terms).await?;
    Ok(written(served, request, identifier, &stored))
}

async fn put_list(
    repository: &LocalRepository,
    request: &DepositRequest,
    body: &[u8],
    terms: WriteTerms<'_>,
) -> Result<Response, DepositError> {
    let deposits = read_list(body)?;
    let records = deposits.len();
    if *terms.condition != Condition::None {
        return Err(DepositError::Unfit(
            "a list has no condition; leave If-Match and If-None-Match out".to_owned(),
        ));
    }
    let stored = repository.put(&request.prefix, deposits, terms).await?;
    let datestamp = from_secs(stored.stamp_secs, Granularity::Second);
    let value = json!({ "records": records, "changed": stored.changed, "datestamp": datestamp });
    Ok(Response::json(200, &value).with(DATESTAMP, datestamp))
}

/// The header with the identifier of a written record.
pub(super) const IDENTIFIER: &str = "Oaimend-Identifier";
/// The header with the datestamp of a written record.
pub(super) const DATESTAMP: &str = "Oaimend-Datestamp";

fn written(
    served: &ServedRepositories,
    request: &DepositRequest,
    identifier: &str,
    stored: &Stored,
) -> Response {
    let datestamp = from_secs(stored.stamp_secs, Granularity::Second);
    let value = json!({ "identifier": identifier, "datestamp": datestamp });
    let status = if stored.is_new { 201 } else { 200 };
    Written { base_url: &served.public_url, repository: request.mapping.id(), identifier, stored }
        .describe(Response::json(status, &value))
}

impl Written<'_> {
    /// Adds the headers about the written record.
    pub(super) fn describe(&self, response: Response) -> Response {
        let datestamp = from_secs(self.stored.stamp_secs, Granularity::Second);
        let address =
            RecordAddress { repository: self.repository, identifier: self.identifier, format: None };
        let response = response
            .with("Location", address.page(self.base_url))
            .with("Cache-Control", "no-store".to_owned())
            .with(IDENTIFIER, self.identifier.to_owned())
            .with(DATESTAMP, datestamp);
        match self.stored.tag {
            Some(tag) => response.with("ETag", tag.to_string()),
            None => response,
        }
    }
}
