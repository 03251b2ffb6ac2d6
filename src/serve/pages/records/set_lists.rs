//! The list of the sets of a repository.

use super::collection::{SourceFacts, set_names};
use super::lists::{ListRequest, html_page};
use crate::serve::response::Response;
use oaimend_mirror::view::sets::KnownSets;
use oaimend_pages::html::{ListNotice, SetEntry, SetsPage};
use oaimend_pages::list::{LINKS_MAX, SetsAddress};
use oaimend_store::ListFilter;
use std::ops::Bound;

impl ListRequest<'_> {
    /// The page with the sets.
    pub(crate) async fn sets(&self, address: &SetsAddress) -> Response {
        let facts = SourceFacts::read(self.store, self.mapping.id()).await;
        match self.try_sets(address, &facts).await {
            Ok(page) => page,
            Err(list_notice) => self.notice(&facts.name, list_notice),
        }
    }

    async fn try_sets(&self, address: &SetsAddress, facts: &SourceFacts) -> Result<Response, ListNotice> {
        let collection = self.collection().await?;
        let mut names = set_names(self.store, self.mapping.id()).await?;
        let known = KnownSets::read(self.store, self.mapping.id(), &collection.prefix).await?;
        names.retain(|set, _| known.check(self.mapping.id(), set).is_ok());
        let validators = self.validators(&collection, &(facts.name.as_str(), address, &names));
        if validators.are_known(self.headers) {
            return Ok(html_page(304, &validators, String::new()));
        }
        let start = address.after.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut rest = names.range::<String, _>((start, Bound::Unbounded));
        let (mut sets, mut last) = (Vec::new(), None);
        for (set_spec, name) in rest.by_ref().take(usize::try_from(LINKS_MAX).unwrap_or(usize::MAX)) {
            let filter = ListFilter { set: Some(set_spec.clone()), ..collection.live() };
            let records = self.store.count(filter).await?;
            if records > 0 {
                sets.push(SetEntry { set_spec: set_spec.clone(), name: name.clone(), records });
            }
            last = Some(set_spec.clone());
        }
        let next = rest.next().map(|_| SetsAddress { repository: address.repository.clone(), after: last });
        let page =
            SetsPage { site: &self.gateway.site, repository_name: &facts.name, address, sets: &sets, next };
        Ok(html_page(200, &validators, page.render()))
    }
}
