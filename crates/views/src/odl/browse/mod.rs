//! ODL-Browse: categories, and the records of each of their values, as sets.
//!
//! No grammar of the component survives, so this one is oaimend's own: `odlbrowse1/CATEGORY/VALUE[/VALUE...]`, or in the
//! characters of the schema `odlbrowse1:CATEGORY:VALUE[:VALUE...]`, as `ListSets` writes it. Lists are in the order of the
//! commits.

mod category;
mod listing;
mod odl_browse;
mod set;
mod values;

pub use category::BrowseCategory;
pub use odl_browse::OdlBrowse;

use crate::index_requests::{Answered, run};
use crate::query_sets::{complete_until_secs, list_hits, selected, whole};
use async_trait::async_trait;
use listing::Listing;
use oaimend_mirror::view::{
    ChosenSet, Component, ComponentSets, QuerySets, RankedList, SelectedList, SelectedRecord, Selection,
};
use oaimend_oai::UnixSecs;
use oaimend_repository::Failure;
use oaimend_search::{ListedHits, Query};
use set::BrowseSet;
use std::sync::Arc;

#[async_trait]
impl Component for OdlBrowse {
    fn name(&self) -> &'static str {
        "_browse"
    }

    fn protocol(&self) -> (&'static str, &'static str) {
        ("ODL-Browse", "1.0")
    }

    async fn sets(&self, after: Option<&str>, count_max: usize) -> Result<Option<ComponentSets>, Failure> {
        let (browse, after) = (self.clone(), after.map(str::to_owned));
        let read =
            run(&self.searches, move |index| Listing::read(&browse, index, after.as_deref(), count_max));
        Ok(Some(read.await?.found()?))
    }

    async fn ranked(&self, _set: &str, _prefix: &str) -> Result<Option<RankedList>, Failure> {
        Ok(None)
    }
}

#[async_trait]
impl QuerySets for OdlBrowse {
    fn protocol(&self) -> (&'static str, &'static str) {
        Component::protocol(self)
    }

    async fn find(&self, set: &str) -> Result<Option<ChosenSet>, Failure> {
        let set = match BrowseSet::read(set, &self.categories) {
            Ok(set) => set,
            Err(text) => return Ok(Some(Err(text))),
        };
        let selection = BrowseSelection { browse: self.clone(), set };
        Ok(Some(match selection.hits(&SelectedList::default(), 1).await? {
            Answered::Found(_) => Ok(Arc::new(selection)),
            Answered::Refused(text) => Err(text),
        }))
    }
}

/// The records that have a value of a category.
#[derive(Debug)]
struct BrowseSelection {
    browse: OdlBrowse,
    set: BrowseSet,
}

impl BrowseSelection {
    async fn hits(&self, list: &SelectedList, count_max: usize) -> Result<Answered<ListedHits>, Failure> {
        let (OdlBrowse { searches, values, .. }, set) = (self.browse.clone(), self.set.clone());
        let mut request = list_hits(Query::All, list, count_max);
        run(&searches, move |index| {
            let value = (&*set.category, set.path.as_slice());
            request.query = values.query(index, value, Some(request.prefix.clone()), request.until_secs)?;
            index.list(&request)
        })
        .await
    }
}

#[async_trait]
impl Selection for BrowseSelection {
    async fn list(&self, list: &SelectedList, count_max: usize) -> Result<Vec<SelectedRecord>, Failure> {
        Ok(selected(whole(self.hits(list, count_max).await?.found()?, list)?))
    }

    async fn count(&self, list: &SelectedList) -> Result<u64, Failure> {
        Ok(whole(self.hits(list, 1).await?.found()?, list)?.total)
    }

    async fn complete_until_secs(&self) -> Result<UnixSecs, Failure> {
        complete_until_secs(&self.browse.searches).await
    }
}
