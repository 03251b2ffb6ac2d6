//! The documents that the API returns. Their documentation is that of the OpenAPI document.

use crate::budget::{DocumentTooLong, join, to_json};
use memchr::memmem;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A page of the repositories of this server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct RepositoryList {
    /// The repositories, in the order of their ids.
    pub repositories: Vec<RepositorySummary>,
    /// The cursor of the next page; `null` on the last one.
    #[schema(required)]
    pub next: Option<String>,
}

/// A repository, as the configuration describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct RepositorySummary {
    /// The id, which other operations take as `repository`.
    pub id: String,
    /// Where its records are: `live`, `tape`, `mirrored`, `local`, `view`, `federation` or `all`.
    #[schema(value_type = String)]
    pub kind: &'static str,
    /// Its baseURL in OAI-PMH.
    #[serde(rename = "baseUrl")]
    pub base_url: String,
}

/// A repository, as it describes itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RepositoryDocument {
    /// The id.
    pub id: String,
    /// Where its records are, as in the list of repositories.
    #[schema(value_type = String)]
    pub kind: &'static str,
    /// Its baseURL in OAI-PMH.
    pub base_url: String,
    /// Its name.
    pub name: String,
    /// The mail addresses of its administrators.
    pub admin_emails: Vec<String>,
    /// A datestamp that none of its records is before.
    pub earliest_datestamp: String,
    /// How it keeps deleted records: `no`, `transient` or `persistent`.
    pub deleted_record: String,
    /// The form of its datestamps: `YYYY-MM-DD` or `YYYY-MM-DDThh:mm:ssZ`.
    pub granularity: String,
}

/// A page of the sets of a repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct SetPage {
    /// The sets; empty if the repository has none.
    pub sets: Vec<SetDocument>,
    /// The cursor of the next page; `null` on the last one.
    #[schema(required)]
    pub next: Option<String>,
}

/// A set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct SetDocument {
    /// The setSpec.
    pub spec: String,
    /// The name.
    pub name: String,
}

/// The formats of a repository or of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct FormatList {
    /// The formats.
    pub formats: Vec<FormatDocument>,
}

/// A format.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct FormatDocument {
    /// The metadataPrefix.
    pub prefix: String,
    /// The URL of its schema.
    pub schema: String,
    /// Its XML namespace.
    pub namespace: String,
}

/// A page of records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordPage<'x> {
    /// The time of the response by the clock of the repository. The next incremental list begins with that of the first
    /// page.
    pub response_date: Cow<'x, str>,
    /// The records; empty if none matches.
    pub records: Vec<RecordDocument<'x>>,
    /// The number of records of the whole list, if the repository says it.
    #[schema(required)]
    pub complete_list_size: Option<u64>,
    /// The cursor of the next page; `null` on the last one.
    #[schema(required)]
    pub next: Option<String>,
}

impl RecordPage<'_> {
    /// The JSON of this page without records, and with the JSON of an array in their place.
    ///
    /// # Errors
    ///
    /// It is longer than 32 MiB.
    pub fn to_json_with(&self, records: &[u8]) -> Result<Vec<u8>, DocumentTooLong> {
        // Quotation marks within texts are escaped, so only the member itself is this text.
        const RECORDS: &[u8] = b"\"records\":[]";
        let frame = to_json(self)?;
        let end = memmem::find(&frame, RECORDS).map_or(frame.len(), |start| start + RECORDS.len());
        let (before, after) = frame.split_at(end);
        let before = before.strip_suffix(b"[]").unwrap_or(before);
        join([before, records, after])
    }
}

/// A record with the parts that the request selects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordDocument<'x> {
    /// The identifier.
    pub identifier: Cow<'x, str>,
    /// The datestamp.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub datestamp: Option<Cow<'x, str>>,
    /// Whether the record is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub deleted: Option<bool>,
    /// The setSpecs of its sets.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub sets: Option<Vec<Cow<'x, str>>>,
    /// The metadata: an XML element that declares its namespaces. A deleted record has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub metadata: Option<Cow<'x, str>>,
    /// The `about` elements of the record, such as its provenance, with the namespaces that they use.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub about: Option<Vec<Cow<'x, str>>>,
    /// The texts of the record by the names of the elements of Dublin Core, such as `title`, if oaimend can read the
    /// format. Each text is whole. A record of more than 50,000 elements, or 4 MiB of text, or with a text of more than
    /// 1 MiB has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub dublin_core: Option<BTreeMap<&'static str, Vec<String>>>,
}

/// A page of found records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchPage {
    /// The number of all found records.
    pub total: u64,
    /// Whether the number is an estimate.
    pub is_estimate: bool,
    /// The records of this page. Those that were deleted since they were indexed are left out.
    pub items: Vec<SearchHitDocument>,
    /// The cursor of the next page; `null` on the last one, and after the first 10,000 records.
    #[schema(required)]
    pub next: Option<String>,
}

/// A found record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchHitDocument {
    /// The id of its repository.
    pub repository: String,
    /// The identifier.
    pub identifier: String,
    /// The URL of its page.
    pub url: String,
    /// The title.
    #[schema(required)]
    pub title: Option<String>,
    /// The names of the creators.
    pub creators: Vec<String>,
    /// The year of publication.
    #[schema(required)]
    pub year: Option<String>,
    /// The tag of the language.
    #[schema(required)]
    pub language: Option<String>,
    /// Whether its rights say that everyone can read the full text.
    pub is_open_access: bool,
    /// The part that shows best why it was found.
    #[schema(required)]
    pub snippet: Option<String>,
    /// Its last change in the mirror.
    pub changed: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::DOCUMENT_BYTES_MAX;

    #[test]
    fn records_are_written_into_their_page() {
        let record = RecordDocument { identifier: "a\"records\":[]".into(), ..RecordDocument::default() };
        for records in [vec![], vec![record.clone()], vec![record.clone(), record]] {
            for next in [None, Some("\"records\":[]".to_owned())] {
                let json = to_json(&records).expect("they are short");
                let response_date = "\"records\":[]".into();
                let records = records.clone();
                let page = RecordPage { response_date, records, complete_list_size: Some(2), next };
                let frame = RecordPage { records: Vec::new(), ..page.clone() };
                assert_eq!(frame.to_json_with(&json), to_json(&page));
                if page.records.len() == 2 {
                    let long = vec![b' '; DOCUMENT_BYTES_MAX];
                    assert_eq!(frame.to_json_with(&long), Err(DocumentTooLong));
                }
            }
        }
    }
}
