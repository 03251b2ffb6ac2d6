//! The parameters of each operation. Their documentation is that of the OpenAPI document.

use crate::fields::RecordFields;
use crate::schemas;
use oaimend_oai::{Request, RequestError};
use serde::Deserialize;
use utoipa::IntoParams;

/// An operation without parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct NoParameters {}

/// A page of the repositories.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct RepositoriesParameters {
    /// Maximum number of repositories in the page.
    #[param(inline, value_type = Option<schemas::Limit>, nullable = false)]
    pub limit: Option<usize>,
    /// `next` of the page before this one.
    #[param(inline, value_type = Option<schemas::Cursor>, nullable = false)]
    pub cursor: Option<String>,
}

/// A page of the sets of a repository.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct SetsParameters {
    /// The id of the repository.
    #[param(inline, value_type = schemas::RepositoryId)]
    pub repository: String,
    /// Maximum number of sets in the page. A page may have fewer although `next` says that the list continues.
    #[param(inline, value_type = Option<schemas::Limit>, nullable = false)]
    pub limit: Option<usize>,
    /// `next` of the page before this one. The other parameters stay the same.
    #[param(inline, value_type = Option<schemas::Cursor>, nullable = false)]
    pub cursor: Option<String>,
}

/// The formats of a repository.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct FormatsParameters {
    /// The id of the repository.
    #[param(inline, value_type = schemas::RepositoryId)]
    pub repository: String,
    /// The formats of this record only.
    #[param(inline, value_type = Option<schemas::Identifier>, nullable = false)]
    pub identifier: Option<String>,
}

/// A page of the records of a repository.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct RecordsParameters {
    /// The id of the repository.
    #[param(inline, value_type = schemas::RepositoryId)]
    pub repository: String,
    /// The metadataPrefix of the format. Without it, it is `oai_dc`.
    #[param(inline, value_type = Option<schemas::MetadataPrefix>, nullable = false)]
    pub prefix: Option<String>,
    /// The setSpec of the set that the list is limited to.
    #[param(inline, value_type = Option<schemas::SetSpec>, nullable = false)]
    pub set: Option<String>,
    /// The lowest datestamp: a day, or a second in UTC.
    #[param(inline, value_type = Option<schemas::Datestamp>, nullable = false)]
    pub from: Option<String>,
    /// The highest datestamp: a day, which is meant to its end, or a second in UTC. It is not before `from`.
    #[param(inline, value_type = Option<schemas::Datestamp>, nullable = false)]
    pub until: Option<String>,
    /// The parts of records that the response has, separated by commas. Without it, it has the header and the metadata.
    #[param(inline, value_type = Option<schemas::Fields>, nullable = false, style = Form, explode = false)]
    pub fields: Option<Vec<String>>,
    /// Maximum number of records in the page. A page may have fewer although `next` says that the list continues.
    #[param(inline, value_type = Option<schemas::Limit>, nullable = false)]
    pub limit: Option<usize>,
    /// `next` of the page before this one. The parameters other than `limit` stay the same.
    #[param(inline, value_type = Option<schemas::Cursor>, nullable = false)]
    pub cursor: Option<String>,
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct RecordParameters {
    /// The id of the repository.
    #[param(inline, value_type = schemas::RepositoryId)]
    pub repository: String,
    /// The identifier of the record.
    #[param(inline, value_type = schemas::Identifier)]
    pub identifier: String,
    /// The metadataPrefix of the format. Without it, it is `oai_dc`.
    #[param(inline, value_type = Option<schemas::MetadataPrefix>, nullable = false)]
    pub prefix: Option<String>,
    /// The parts of the record that the response has, separated by commas. Without it, it has the header and the metadata.
    #[param(inline, value_type = Option<schemas::Fields>, nullable = false, style = Form, explode = false)]
    pub fields: Option<Vec<String>>,
}

/// A page of found records.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct SearchParameters {
    /// The query. Without it, all records are found.
    #[param(inline, value_type = Option<schemas::SearchQuery>, nullable = false)]
    pub q: Option<String>,
    /// The id of the repository that is searched. It is mirrored, and its records have pages; others are refused. Without
    /// it, all of these are searched.
    #[param(inline, value_type = Option<schemas::RepositoryId>, nullable = false)]
    pub repository: Option<String>,
    /// The type of the work.
    #[param(inline, value_type = Option<schemas::SearchValue>, nullable = false)]
    pub r#type: Option<String>,
    /// The year of publication.
    #[param(inline, value_type = Option<schemas::Year>, nullable = false)]
    pub year: Option<String>,
    /// The tag of the language.
    #[param(inline, value_type = Option<schemas::SearchValue>, nullable = false)]
    pub language: Option<String>,
    /// Whether the full text is open to everyone.
    #[param(inline, value_type = Option<schemas::Access>, nullable = false)]
    pub access: Option<String>,
    /// The order: without it, the most relevant records come first.
    #[param(inline, value_type = Option<schemas::Sort>, nullable = false)]
    pub sort: Option<String>,
    /// Maximum number of records in the page.
    #[param(inline, value_type = Option<schemas::SearchLimit>, nullable = false)]
    pub limit: Option<usize>,
    /// `next` of the page before this one. The parameters other than `limit` stay the same.
    #[param(inline, value_type = Option<schemas::Cursor>, nullable = false)]
    pub cursor: Option<String>,
}

/// The format of a request that names none.
const COMMON_FORMAT: &str = "oai_dc";

impl RecordsParameters {
    /// The selected parts of records.
    pub fn fields(&self) -> RecordFields<'_> {
        RecordFields::of(self.fields.as_deref())
    }

    /// The request for the first page.
    ///
    /// # Errors
    ///
    /// `until` is before `from`.
    pub fn request(&self) -> Result<Request, RequestError> {
        // OAI-PMH wants one granularity.
        let has_time = [&self.from, &self.until].into_iter().flatten().any(|date| date.len() > DAY_CHARS);
        let fitted = |date: &Option<String>, time: &str| {
            let date = date.as_ref()?;
            Some(if has_time && date.len() == DAY_CHARS { format!("{date}{time}") } else { date.clone() })
        };
        let from = fitted(&self.from, "T00:00:00Z");
        let until = fitted(&self.until, "T23:59:59Z");
        let prefix = self.prefix.as_deref().unwrap_or(COMMON_FORMAT);
        let list = Request::list_records(prefix, self.set.as_deref(), from.as_deref(), until.as_deref());
        let list = if self.fields().are_of_header() { list.to_list_identifiers() } else { list };
        Request::parse(list.query().as_bytes())
    }
}

/// The length of `YYYY-MM-DD`.
const DAY_CHARS: usize = 10;

impl RecordParameters {
    /// The request for the record.
    pub fn request(&self) -> Request {
        Request::get_record(&self.identifier, self.prefix.as_deref().unwrap_or(COMMON_FORMAT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Parameters;

    #[test]
    fn dates_get_one_granularity() {
        let query = |query: &str| {
            let parameters = RecordsParameters::read(query.as_bytes()).expect("legal");
            parameters.request().map(|request| request.query().to_owned()).map_err(|error| error.text)
        };
        assert_eq!(
            query("repository=x&from=2020-02-29&until=2021-01-01").as_deref(),
            Ok("verb=ListRecords&metadataPrefix=oai_dc&from=2020-02-29&until=2021-01-01")
        );
        assert_eq!(
            query("repository=x&fields=deleted&from=2020-02-29T01:02:03Z&until=2020-03-01").as_deref(),
            Ok(
                "verb=ListIdentifiers&metadataPrefix=oai_dc&from=2020-02-29T01%3A02%3A03Z&until=2020-03-01T23%3A59%3A59Z"
            )
        );
        assert!(query("repository=x&from=2020-03-01&until=2020-02-29").is_err());
    }
}
