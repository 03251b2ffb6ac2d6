//! The values of a field in a mirrored repository.

use super::failure::SearchFailure;
use crate::serve::pages::records::collection::SourceFacts;
use crate::serve::pages::records::record::with_policies;
use crate::serve::pages::state::GatewayState;
use crate::serve::response::Response;
use crate::serve::search::SearchService;
use crate::serve::served::ServedRepositories;
use oaimend_pages::RecordForm;
use oaimend_pages::html::{BrowsePage, SearchNoticePage};
use oaimend_pages::list::{BrowseAddress, BrowsedField};
use oaimend_search::{
    FieldName, FoundValues, Hit, RecordFilter, SearchIndex, ValueCount, ValueCounts, Values,
};
use oaimend_store::ChosenRecords;
use std::collections::BTreeMap;

/// Maximum number of values on a page.
const VALUES_MAX: usize = 200;
/// Maximum number of bytes of records that are read at once. A longer record is read alone.
const READ_BYTES_MAX: usize = 4 << 20;

/// The page with the values of a field. Its repository is mirrored and has pages of its records.
pub(crate) async fn browse(
    served: &ServedRepositories,
    gateway: &GatewayState,
    address: &BrowseAddress,
    search: &SearchService,
) -> Response {
    let name = SourceFacts::read(&*served.store.mirror, &address.repository).await.name;
    let page = |status, values, next| {
        let page = BrowsePage { site: &gateway.site, repository_name: &name, address, values, next };
        html(status, page.render()).with("Cache-Control", "public, max-age=60".to_owned())
    };
    let filter = RecordFilter { repositories: Some(vec![address.repository.clone()]), prefix: None };
    match find(served, search, filter, address.clone()).await {
        Ok((values, next)) => page(200, Some(&values), next),
        Err(failure) => failure.response(
            // The repository is searched, so the only request that is refused is one for too many values. The page says so.
            |_| page(200, None, None),
            |notice| {
                let page = SearchNoticePage { site: &gateway.site, notice };
                html(notice.status(), page.render()).with("Cache-Control", "no-store".to_owned())
            },
        ),
    }
}

fn html(status: u16, page: String) -> Response {
    with_policies(Response::new(status, RecordForm::Html.content_type(), page)).compressible()
}

/// The values of a page with the numbers of their records, and the page after them.
type PageValues = (Vec<(String, u64)>, Option<BrowseAddress>);

async fn find(
    served: &ServedRepositories,
    search: &SearchService,
    filter: RecordFilter,
    address: BrowseAddress,
) -> Result<PageValues, SearchFailure> {
    let field = match address.field {
        BrowsedField::Creators => "creator",
        BrowsedField::Titles => "title",
        BrowsedField::Years => {
            let years = search.searches.run(move |index| index.years(&filter)).await?.into_iter();
            return Ok((years.map(|(year, records)| (year.to_string(), records)).collect(), None));
        }
    };
    let request = Values {
        field: FieldName(field.to_owned()),
        filter,
        start: address.start.clone(),
        after: address.after.clone(),
        count_max: VALUES_MAX + 1,
    };
    let requested = request.clone();
    let found = search.searches.run(move |index| index.values_or_records(&requested)).await?;
    let mut found = match found {
        FoundValues::Values(values) => values,
        FoundValues::Records(hits) => match count(served, search, hits, request.clone()).await {
            Ok(values) => values,
            // The index can answer without the mirror.
            Err(SearchFailure::Mirror) => search.searches.run(move |index| index.values(&request)).await?,
            Err(failure) => return Err(failure),
        },
    };
    let has_more = found.len() > VALUES_MAX;
    found.truncate(VALUES_MAX);
    let last = if has_more { found.last() } else { None };
    let next = last.map(|last| BrowseAddress { after: Some(last.folded.clone()), ..address.clone() });
    Ok((found.into_iter().map(|value| (value.value, value.records)).collect(), next))
}

/// The values of records. Those that have changed since they were indexed are left out.
async fn count(
    served: &ServedRepositories,
    search: &SearchService,
    hits: Vec<Hit>,
    request: Values,
) -> Result<Vec<ValueCount>, SearchFailure> {
    let mut collections: BTreeMap<(String, String), Vec<u64>> = BTreeMap::new();
    for hit in hits {
        collections.entry((hit.repository, hit.prefix)).or_default().push(hit.sequence);
    }
    let mut counts = ValueCounts::new(request);
    for ((repository, prefix), sequences) in collections {
        let mut rest = sequences.as_slice();
        while !rest.is_empty() {
            let (repository, prefix, sequences) = (repository.clone(), prefix.clone(), rest.to_vec());
            let chosen =
                ChosenRecords { repository, prefix, sequences, bytes_max: READ_BYTES_MAX, with_bytes: true };
            let (repository, read) =
                (chosen.repository.clone(), served.store.mirror.records_at(chosen).await?);
            // At least one of them was read.
            rest = rest.get(read.len().max(1)..).unwrap_or_default();
            // The analysis takes a processor, as a search does.
            let add = move |_: &SearchIndex| {
                read.iter().flatten().for_each(|record| counts.add(&repository, record));
                Ok(counts)
            };
            counts = search.searches.run(add).await?;
        }
    }
    Ok(counts.into_values())
}
