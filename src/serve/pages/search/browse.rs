//! The values of a field in a mirrored repository.

use super::failure::SearchFailure;
use super::request::filter_of;
use crate::serve::pages::records::collection::SourceFacts;
use crate::serve::pages::records::record::with_policies;
use crate::serve::pages::state::GatewayState;
use crate::serve::response::Response;
use crate::serve::search::SearchService;
use crate::serve::served::ServedRepositories;
use oaimend_pages::RecordForm;
use oaimend_pages::html::{BrowsePage, SearchNoticePage};
use oaimend_pages::list::{BrowseAddress, BrowsedField};
use oaimend_pages::search::{FacetKind, SearchAddress};
use oaimend_search::{FieldName, IndexError, RecordFilter, SearchIndex, Values};

/// Maximum number of values on a page.
const VALUES_MAX: usize = 200;

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
    let all = SearchAddress::default().with(FacetKind::Repository, &address.repository);
    let (filter, request) = (filter_of(served, Some(&all)), address.clone());
    match search.searches.run(move |index| values(index, filter, &request)).await {
        Ok((values, next)) => page(200, Some(&values), next),
        Err(error) => SearchFailure::from(error).response(
            // The only request that is refused is one for too many values. The page says so.
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
type FoundValues = (Vec<(String, u64)>, Option<BrowseAddress>);

fn values(
    index: &SearchIndex,
    filter: RecordFilter,
    address: &BrowseAddress,
) -> Result<FoundValues, IndexError> {
    let field = match address.field {
        BrowsedField::Creators => "creator",
        BrowsedField::Titles => "title",
        BrowsedField::Years => {
            let years = index.years(&filter)?.into_iter();
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
    let mut found = index.values(&request)?;
    let has_more = found.len() > VALUES_MAX;
    found.truncate(VALUES_MAX);
    let last = if has_more { found.last() } else { None };
    let next = last.map(|last| BrowseAddress { after: Some(last.folded.clone()), ..address.clone() });
    Ok((found.into_iter().map(|value| (value.value, value.records)).collect(), next))
}
