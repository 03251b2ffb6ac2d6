//! The links of a mirrored record with other records, for its page and as JSON.

use crate::config::Mapping;
use crate::serve::served::ServedRepositories;
use oaimend_pages::RecordForm;
use oaimend_pages::record::{Related, RelatedRecord, RelatedRecords, RelatedWork, SameRecord};
use oaimend_pages::route::RecordTarget;
use oaimend_repository::{Failure, Reason};
use oaimend_resolver::{
    Citation, ContentIdentifier, Duplicate, ItemLinks, LinkCursor, LinkedItem, LinksRequest,
};

/// Maximum number of works that a record cites, and of records that cite it, on its page.
const SHOWN_MAX: usize = 20;
/// The same in JSON. Further ones are in further responses.
const LISTED_MAX: usize = 100;

/// Why there are no links as JSON.
pub(crate) enum NoLinks {
    /// The place in the list is none.
    NotAPlace,
    /// The table of identifiers or the mirror cannot be read now.
    Failed(Failure),
}

/// The links that a form of a record shows.
///
/// # Errors
///
/// The form consists of links, and they cannot be read. A page says so instead.
pub(crate) async fn related(
    served: &ServedRepositories,
    mapping: &Mapping,
    target: &RecordTarget,
    form: RecordForm,
) -> Result<Related, NoLinks> {
    let (count_max, named_max) = match form {
        RecordForm::Html => (SHOWN_MAX, SHOWN_MAX),
        RecordForm::LinksJson => (LISTED_MAX, usize::MAX),
        // Only the duplicates are in it.
        RecordForm::JsonLd => (0, 0),
        _ => return Ok(Related::None),
    };
    let after = match target.after.as_deref() {
        Some(text) => Some(LinkCursor::read(text).ok_or(NoLinks::NotAPlace)?),
        None => None,
    };
    let identifier = &target.identifier;
    let request =
        LinksRequest { repository: mapping.id(), identifier, names: None, after, count_max, named_max };
    let sources = served.resolver.sources(&served.repositories);
    match served.resolver.resolver.links(&sources, &request).await {
        Ok(links) => Ok(Related::Known(Box::new(shown(links.unwrap_or_default())))),
        Err(failure) if form == RecordForm::LinksJson => Err(NoLinks::Failed(failure)),
        Err(failure) => {
            // It is not ready while it is built, which the person can wait for.
            if failure.reason == Reason::Mirror {
                tracing::warn!(
                    repository = mapping.id(),
                    identifier,
                    "the page of a record has no links: {}",
                    failure.details
                );
            }
            Ok(Related::NotReady)
        }
    }
}

fn shown(links: ItemLinks) -> RelatedRecords {
    let ItemLinks { identifiers, cites, cited_by, next, same_as, has_more, incomplete } = links;
    let identifier = |ContentIdentifier { kind, value }: ContentIdentifier| (kind.name(), value);
    let work = |citation: Citation| RelatedWork {
        basis: citation.basis(),
        field: citation.field.name(),
        identifier: citation.identifier.map(identifier),
        records: citation.records.into_iter().map(record).collect(),
    };
    let same =
        |Duplicate { item, same_by }: Duplicate| SameRecord { record: record(item), same_by: same_by.name() };
    RelatedRecords {
        identifiers: identifiers.into_iter().map(identifier).collect(),
        cites: cites.into_iter().map(work).collect(),
        cited_by: cited_by.into_iter().map(work).collect(),
        next: next.map(LinkCursor::text),
        same_as: same_as.into_iter().map(same).collect(),
        has_more,
        incomplete,
    }
}

fn record(LinkedItem { repository, identifier, title }: LinkedItem) -> RelatedRecord {
    RelatedRecord { repository, identifier, title }
}
