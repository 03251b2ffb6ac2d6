//! The list of the records of a repository or of a set: months, ranges of sequences, and links to records.

use super::collection::{ListedCollection, SourceFacts, set_names};
use super::record::{CACHE_CONTROL, notice, with_links, with_policies};
use crate::config::{Mapping, RecordPages};
use crate::serve::pages::rendering::RenderLimits;
use crate::serve::pages::state::GatewayState;
use crate::serve::response::Response;
use crate::serve::validators::Validators;
use http::HeaderMap;
use oaimend_html::fingerprint;
use oaimend_mirror::view::sets::KnownSets;
use oaimend_oai::datestamp::{Granularity, from_secs};
use oaimend_pages::RecordForm;
use oaimend_pages::html::{
    ListContent, ListNotice, ListNoticePage, ListPage, ListedFrom, MonthEntry, RecordLink,
};
use oaimend_pages::list::{LINKS_MAX, ListAddress, ListPart, Month, SequenceRange, first_title, title_of};
use oaimend_record::{PublicationDate, RecordDocument, WorkDescription};
use oaimend_repository::{Failure, Reason, RecordView};
use oaimend_store::{ListFilter, ListQuery, MirrorError, MirrorStore, RepositoryId, StoredRecord};
use std::collections::BTreeMap;
use std::num::NonZeroU64;

/// A request for a list of a mirrored repository.
pub(crate) struct ListRequest<'a> {
    pub(crate) store: &'a dyn MirrorStore,
    pub(crate) gateway: &'a GatewayState,
    pub(crate) mapping: &'a Mapping,
    pub(crate) headers: &'a HeaderMap,
    /// The limits of renderings.
    pub(crate) rendering: &'a RenderLimits,
}

/// Maximum number of bytes of records that are read for the titles of a page. Further links have identifiers.
const TITLES_BYTES_MAX: usize = 8 << 20;
/// Bytes of records that are read from the store at a time.
const BATCH_BYTES: usize = 1 << 20;
/// Maximum number of creators in a link.
const CREATORS_MAX: usize = 3;

impl ListRequest<'_> {
    /// The page of a list.
    pub(crate) async fn list(&self, address: &ListAddress) -> Response {
        let facts = SourceFacts::read(self.store, self.mapping.id()).await;
        match self.try_list(address, &facts).await {
            Ok(page) => page,
            Err(list_notice) => self.notice(&facts.name, list_notice),
        }
    }

    async fn try_list(&self, address: &ListAddress, facts: &SourceFacts) -> Result<Response, ListNotice> {
        let collection = self.collection().await?;
        let names = set_names(self.store, self.mapping.id()).await?;
        let set_name = match &address.set {
            Some(set) => Some(self.known_set(&collection, &names, set).await?),
            None => None,
        };
        let has_sets = !names.is_empty();
        let validators = self.validators(&collection, &(facts.name.as_str(), address, set_name, has_sets));
        if validators.are_known(self.headers) {
            return Ok(html_page(304, &validators, String::new()));
        }
        let list = List { store: self.store, collection: &collection, address, rendering: self.rendering };
        let (content, neighbours) = match address.part {
            ListPart::Months => (list.months().await?, [None; 2]),
            ListPart::Month(month) => (list.part(month, None).await?, list.months_around(month).await?),
            ListPart::Range(month, range) => {
                (list.part(month, Some(range)).await?, list.ranges_around(month, range).await?)
            }
            ListPart::Unknown => return Err(ListNotice::Unknown),
        };
        let page = ListPage {
            site: &self.gateway.site,
            repository_name: &facts.name,
            address,
            set_name,
            content,
            neighbours,
            has_sets,
            listed_from: ListedFrom::Mirror,
        };
        let page = html_page(200, &validators, page.render());
        let Some(feed) = address.feed() else { return Ok(page) };
        let feed = feed.url(self.gateway.site.public_url());
        Ok(with_links(page, format!("<{feed}>; rel=\"alternate\"; type=\"application/atom+xml\"")))
    }

    /// The name of a set whose records are known.
    pub(in crate::serve::pages) async fn known_set<'n>(
        &self,
        collection: &ListedCollection,
        names: &'n BTreeMap<String, String>,
        set: &str,
    ) -> Result<&'n str, ListNotice> {
        let name = names.get(set).ok_or(ListNotice::Unknown)?;
        let sets = KnownSets::read(self.store, self.mapping.id(), &collection.prefix).await?;
        sets.check(self.mapping.id(), set).map_err(|_| ListNotice::UnknownMembers)?;
        Ok(name)
    }

    /// The collection that is listed.
    pub(in crate::serve::pages) async fn collection(&self) -> Result<ListedCollection, ListNotice> {
        if self.mapping.records == RecordPages::Off {
            return Err(ListNotice::PagesOff);
        }
        ListedCollection::find(self.store, self.mapping).await?.ok_or(ListNotice::NotHarvested)
    }

    /// The validators of a page. `facts` is everything else on which the page depends.
    pub(super) fn validators(
        &self,
        collection: &ListedCollection,
        facts: &impl std::fmt::Debug,
    ) -> Validators {
        let depends_on =
            format!("{:?}", (&self.gateway.version, self.mapping.id(), collection.state(), facts));
        Validators {
            tag: fingerprint([depends_on.as_bytes()]),
            modified_secs: Some(collection.version.last_stamp_secs),
        }
    }

    /// The page in place of a list.
    pub(in crate::serve::pages) fn notice(&self, repository_name: &str, list_notice: ListNotice) -> Response {
        list_notice_page(self.gateway, self.mapping.id(), repository_name, list_notice)
    }
}

/// The page in place of a list.
pub(crate) fn list_notice_page(
    gateway: &GatewayState,
    repository: &str,
    repository_name: &str,
    list_notice: ListNotice,
) -> Response {
    let page = ListNoticePage { site: &gateway.site, repository, repository_name, notice: list_notice };
    let failure = match list_notice {
        ListNotice::Unknown | ListNotice::PagesOff => {
            return notice(404, RecordForm::Html, list_notice.title(), || page.render());
        }
        ListNotice::RepositoryRemoved => {
            return notice(410, RecordForm::Html, list_notice.title(), || page.render());
        }
        ListNotice::NotHarvested | ListNotice::NotListed | ListNotice::UnknownMembers => {
            Failure::new(Reason::MirrorIncomplete, list_notice.title())
        }
        ListNotice::Unreadable => Failure::new(Reason::Mirror, list_notice.title()),
    };
    notice(503, RecordForm::Html, list_notice.title(), || page.render())
        .with("Retry-After", failure.retry_after_secs.to_string())
        .with("Proxy-Status", failure.proxy_status())
}

/// A page with validators, or the response that it has not changed.
pub(super) fn html_page(status: u16, validators: &Validators, html: String) -> Response {
    let page = Response::new(status, RecordForm::Html.content_type(), html);
    let page = validators.add_to(page).with("Cache-Control", CACHE_CONTROL.to_owned());
    with_policies(page).compressible()
}

/// The list whose part is requested.
struct List<'a> {
    store: &'a dyn MirrorStore,
    collection: &'a ListedCollection,
    address: &'a ListAddress,
    rendering: &'a RenderLimits,
}

impl List<'_> {
    fn filter(&self, month: Month, range: Option<SequenceRange>) -> ListFilter {
        let (from_secs, until_secs) = month.seconds();
        ListFilter {
            set: self.address.set.clone(),
            from_secs: Some(from_secs),
            until_secs: Some(until_secs),
            sequences: range.map(SequenceRange::sequences),
            ..self.collection.live()
        }
    }

    /// The first and the last month of the collection; `None` if it never had a record.
    async fn first_and_last_month(&self) -> Result<Option<(Month, Month)>, MirrorError> {
        let sizes = self.store.collections(RepositoryId(&self.collection.repository)).await?;
        let size = sizes.into_iter().find(|size| size.prefix == self.collection.prefix);
        let stamps = size.and_then(|size| size.earliest_stamp_secs.zip(size.latest_stamp_secs));
        Ok(stamps.map(|(first, last)| (Month::of_secs(first), Month::of_secs(last))))
    }

    /// The months with records, the newest first.
    async fn months(&self) -> Result<ListContent, ListNotice> {
        let (mut entries, mut links) = (Vec::new(), 0);
        let Some((first, last)) = self.first_and_last_month().await? else {
            return Ok(ListContent::Months(entries));
        };
        let mut next = Some(last);
        while let Some(month) = next.filter(|month| *month >= first && links < LINKS_MAX) {
            next = month.previous();
            let records = self.store.count(self.filter(month, None)).await?;
            if records == 0 {
                continue;
            }
            links += 1;
            // Without links to wide ranges, a record would be more than four links away from the start page.
            let mut ranges =
                if records > LINKS_MAX { self.ranges(month, None, LINKS_MAX + 1).await? } else { Vec::new() };
            if links + ranges.len() as u64 > LINKS_MAX {
                ranges.clear();
            }
            links += ranges.len() as u64;
            entries.push(MonthEntry { month, records, ranges });
        }
        Ok(ListContent::Months(entries))
    }

    /// A month or a range in it: its records if they fit on a page, or its ranges.
    async fn part(&self, month: Month, range: Option<SequenceRange>) -> Result<ListContent, ListNotice> {
        let [widest, ..] = SequenceRange::widths();
        let counts = self.store.count_by_sequence(self.filter(month, range), widest).await?;
        if counts.is_empty() {
            return Err(ListNotice::Unknown);
        }
        let records: u64 = counts.iter().map(|(_, count)| count).sum();
        if records <= LINKS_MAX {
            return Ok(ListContent::Records(self.records(month, range).await?));
        }
        Ok(ListContent::Ranges(month, self.ranges(month, range, LINKS_MAX).await?))
    }

    /// The widest ranges that divide the records, at least `width_min` wide; empty if there are none.
    async fn ranges(
        &self,
        month: Month,
        range: Option<SequenceRange>,
        width_min: u64,
    ) -> Result<Vec<(SequenceRange, u64)>, MirrorError> {
        let fits =
            |width: &NonZeroU64| width.get() >= width_min && range.is_none_or(|range| range.contains(*width));
        for width in SequenceRange::widths().into_iter().filter(fits) {
            let found = self.ranges_of(width, self.filter(month, range)).await?;
            if found.len() > 1 {
                return Ok(found);
            }
        }
        Ok(Vec::new())
    }

    /// The ranges of this width with records.
    async fn ranges_of(
        &self,
        width: NonZeroU64,
        filter: ListFilter,
    ) -> Result<Vec<(SequenceRange, u64)>, MirrorError> {
        let counts = self.store.count_by_sequence(filter, width).await?;
        let counts = counts.into_iter().filter(|(_, count)| *count > 0);
        Ok(counts.map(|(first, count)| (SequenceRange::around(first, width), count)).collect())
    }

    /// Links to the records, in their order. Damaged records are left out.
    async fn records(
        &self,
        month: Month,
        range: Option<SequenceRange>,
    ) -> Result<Vec<RecordLink>, ListNotice> {
        let links_max = usize::try_from(LINKS_MAX).unwrap_or(usize::MAX);
        let (mut links, mut after, mut read_bytes) = (Vec::new(), None, 0);
        while links.len() < links_max {
            let query = ListQuery {
                filter: self.filter(month, range),
                after,
                count_max: links_max - links.len(),
                bytes_max: BATCH_BYTES,
                with_bytes: read_bytes < TITLES_BYTES_MAX,
            };
            let page = self.store.list(query).await?;
            let page_bytes = page.records.iter().map(|record| record.bytes.len()).sum::<usize>();
            read_bytes += page_bytes;
            after = page.next;
            let records = page.records;
            let read = move || records.iter().map(link_to).collect::<Vec<_>>();
            links.extend(self.rendering.run(page_bytes, read).await.map_err(|_| ListNotice::Unreadable)?);
            if after.is_none() {
                break;
            }
        }
        Ok(links)
    }

    /// The nearest months with records before and after a month.
    async fn months_around(&self, month: Month) -> Result<[Option<ListPart>; 2], MirrorError> {
        let Some((first, last)) = self.first_and_last_month().await? else { return Ok([None; 2]) };
        let mut around = [None; 2];
        for (found, step) in around.iter_mut().zip([Month::previous, Month::next]) {
            let mut near = step(month);
            while let Some(month) = near.filter(|month| (first..=last).contains(month)) {
                if self.store.count(self.filter(month, None)).await? > 0 {
                    *found = Some(ListPart::Month(month));
                    break;
                }
                near = step(month);
            }
        }
        Ok(around)
    }

    /// The nearest ranges with records before and after a range, in the next wider one.
    async fn ranges_around(
        &self,
        month: Month,
        range: SequenceRange,
    ) -> Result<[Option<ListPart>; 2], MirrorError> {
        let ranges = self.ranges_of(range.width(), self.filter(month, range.parent())).await?;
        let first = range.sequences().start;
        let start = |other: &SequenceRange| other.sequences().start;
        let mut ranges = ranges.into_iter().map(|(range, _)| range).peekable();
        let mut previous = None;
        while let Some(before) = ranges.next_if(|other| start(other) < first) {
            previous = Some(before);
        }
        let next = ranges.find(|other| start(other) > first);
        Ok([previous, next].map(|range| range.map(|range| ListPart::Range(month, range))))
    }
}

fn link_to(record: &StoredRecord) -> RecordLink {
    let xml = simdutf8::basic::from_utf8(&record.bytes).unwrap_or_default();
    let view = RecordView::read(xml);
    let document = view.as_ref().and_then(|view| RecordDocument::read_content(view).ok());
    let work = document.map(|document| WorkDescription::of(&document)).unwrap_or_default();
    RecordLink {
        identifier: record.identifier.clone(),
        // Some formats have no crosswalk.
        title: title_of(&work).or_else(|| first_title(view.as_ref()?)),
        more_creators: work.core.creators.len().saturating_sub(CREATORS_MAX),
        year: work.published.map(PublicationDate::year),
        creators: work.core.creators.into_iter().take(CREATORS_MAX).collect(),
        changed: from_secs(record.stamp_secs, Granularity::Day),
    }
}
