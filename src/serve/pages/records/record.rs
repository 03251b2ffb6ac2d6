//! The page of a record, from the store of the mirror. `live_record` makes that of a record that is not mirrored.

use super::collection::{SourceFacts, mirrored_formats, served_formats};
use super::item::{ItemRecords, document_of, live_formats};
use super::record_cache::{PageBasis, PageName, RecordCache, Versions};
use super::record_xml::{XML_DECLARATION, raw_metadata, written};
use crate::config::{CanonicalPage, Mapping, RecordPages};
use crate::serve::pages::rendering::RenderLimits;
use crate::serve::pages::state::GatewayState;
use crate::serve::response::Response;
use crate::serve::validators::Validators;
use http::HeaderMap;
use oaimend_html::{CONTENT_SECURITY_POLICY, Site, fingerprint};
use oaimend_mirror::view::record_xml::{Header, read_record};
use oaimend_oai::UnixSecs;
use oaimend_oai::datestamp::{Granularity, from_secs};
use oaimend_pages::RecordForm;
use oaimend_pages::html::{
    DeletedRecordPage, FormatTab, NoRecordPage, NoRecordReason, Provenance, RecordPage, UnknownRecordPage,
};
use oaimend_pages::record::{LINK_HEADERS_BYTES_MAX, RecordAddress, Related, Signposts, related_json};
use oaimend_pages::route::RecordTarget;
use oaimend_pages::texts::plain;
use oaimend_record::{
    RecordDocument, UnreadableRecord, WorkDescription, bibtex, csl_json, json_ld_same_as, ris,
};
use oaimend_repository::{Failure, Reason};
use oaimend_store::{
    Identifier, MirrorError, MirrorStore, Prefix, RecordRepairs, RecordStatus, RepositoryId, StoredRecord,
};
use std::sync::Arc;

/// A request for a record of a mirrored repository.
pub(crate) struct RecordRequest<'a> {
    pub(crate) store: &'a dyn MirrorStore,
    pub(crate) gateway: &'a Arc<GatewayState>,
    pub(crate) mapping: &'a Arc<Mapping>,
    pub(crate) target: &'a RecordTarget,
    pub(crate) form: RecordForm,
}

/// A record, with everything of the store on which its page depends.
pub(crate) struct FoundRecord {
    /// The record in the format that is shown.
    pub(super) record: StoredRecord,
    /// The records that describe the item.
    pub(super) item: ItemRecords,
    pub(super) formats: Vec<FormatTab>,
    /// The repairs of the record, if the page shows them.
    pub(super) repairs: RecordRepairs,
    pub(super) origin: RecordOrigin,
    /// The links that the page shows.
    pub(crate) related: Related,
}

/// Where a record was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordOrigin {
    Mirror,
    /// A response of the source. The record has no stamp and no sequence.
    Source,
}

/// Why there is no page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// No record has this identifier, or none in this format.
    Unknown,
    /// The record is deleted.
    Deleted {
        /// The datestamp of the deletion, in seconds since 1970.
        datestamp_secs: UnixSecs,
    },
    /// It cannot be shown.
    NotShown(NoRecordReason),
}

const NOT_HARVESTED: Missing = Missing::NotShown(NoRecordReason::NotHarvested);
const DAMAGED: Missing = Missing::NotShown(NoRecordReason::Damaged);

impl From<MirrorError> for Missing {
    fn from(error: MirrorError) -> Self {
        match error {
            MirrorError::Damaged => Self::NotShown(NoRecordReason::Damaged),
            _ => Self::NotShown(NoRecordReason::Unreadable),
        }
    }
}

impl From<UnreadableRecord> for Missing {
    fn from(_: UnreadableRecord) -> Self {
        Self::NotShown(NoRecordReason::Damaged)
    }
}

/// The `Cache-Control` of pages. They change with harvests only.
pub(crate) const CACHE_CONTROL: &str = "public, max-age=300";

/// The `Cache-Control` of responses that a cache must check each time it uses them.
const NO_CACHE: &str = "no-cache";

/// Whether a response is a resource of ResourceSync. Its lists are as of now, so a client that has read one must not get
/// an older resource, or an older notice that it is deleted or unknown, from a cache in between.
fn is_listed(form: RecordForm) -> bool {
    form == RecordForm::RawMetadata
}

impl RecordRequest<'_> {
    /// Finds the record and its formats in the store.
    ///
    /// # Errors
    ///
    /// There is nothing to show. A record that is not stored is unknown only if the harvest was complete.
    pub(crate) async fn find(&self) -> Result<FoundRecord, Missing> {
        let (store, repository) = (self.store, RepositoryId(self.mapping.id()));
        let identifier = Identifier(&self.target.identifier);
        let mirrored = mirrored_formats(store, self.mapping).await?;
        let served = served_formats(store, self.mapping).await?;
        let live = live_formats(store, repository, &served, identifier).await?;
        let by_default = match live.first() {
            Some(richest) => Some(*richest),
            None => self.format_of_missing(&mirrored).await?,
        };
        let shown = match &self.target.format {
            Some(named) => mirrored.iter().find(|prefix| *prefix == named),
            None => by_default,
        };
        let Some(shown) = shown else {
            let unknown_format = self.target.format.is_some() && !mirrored.is_empty();
            let is_complete = !mirrored.is_empty() && mirrored.len() == served.len();
            let is_unknown = unknown_format || is_complete;
            return Err(if is_unknown { Missing::Unknown } else { NOT_HARVESTED });
        };
        if !served.contains(shown) {
            return Err(NOT_HARVESTED);
        }
        let record = store.record(repository, Prefix(shown), identifier).await?.ok_or(Missing::Unknown)?;
        if record.status == RecordStatus::Deleted {
            return Err(Missing::Deleted { datestamp_secs: record.datestamp_secs });
        }
        let item = ItemRecords::read(store, repository, &served, identifier).await;
        // A damaged record does not hide those in other formats.
        let item = item.ok().flatten().unwrap_or_else(|| ItemRecords { best: record.clone(), common: None });
        let tab = |prefix: &String| FormatTab {
            prefix: prefix.clone(),
            is_default: Some(prefix) == by_default,
            is_current: prefix == shown,
        };
        let formats = live.into_iter().map(tab).collect();
        let repairs = match self.form {
            RecordForm::Html => store.repairs(repository, Prefix(shown), identifier).await?,
            _ => RecordRepairs::default(),
        };
        let (origin, related) = (RecordOrigin::Mirror, Related::None);
        Ok(FoundRecord { record, item, formats, repairs, origin, related })
    }

    /// The format whose record says why an item has no page: one that is not harvested completely yet, or else that of a
    /// deleted record.
    async fn format_of_missing<'f>(&self, mirrored: &'f [String]) -> Result<Option<&'f String>, MirrorError> {
        let (repository, identifier) = (RepositoryId(self.mapping.id()), Identifier(&self.target.identifier));
        let stored = self.store.formats_of_item(repository, identifier).await?;
        let of_status = |status| mirrored.iter().find(|prefix| stored.contains(&((*prefix).clone(), status)));
        Ok(of_status(RecordStatus::Live).or_else(|| of_status(RecordStatus::Deleted)))
    }

    /// The response with a record.
    pub(crate) async fn show(
        &self,
        found: FoundRecord,
        headers: &HeaderMap,
        limits: &RenderLimits,
        cache: Option<(&RecordCache, Versions)>,
    ) -> Response {
        let rendering = Rendering {
            gateway: Arc::clone(self.gateway),
            mapping: Arc::clone(self.mapping),
            target: self.target.clone(),
            form: self.form,
            found,
            facts: SourceFacts::read(self.store, self.mapping.id()).await,
        };
        if let Some(unchanged) = rendering.unchanged(headers) {
            return unchanged;
        }
        let validators = rendering.validators();
        let may_be_kept = rendering.may_be_kept();
        let rendered = limits.run(rendering.xml_bytes(), move || rendering.render()).await;
        let unreadable = Err(Missing::NotShown(NoRecordReason::Unreadable));
        match rendered.unwrap_or(unreadable) {
            Ok(page) => {
                if page.status == 200
                    && may_be_kept
                    && let Some((cache, versions)) = cache
                {
                    let (gateway, mapping) = (Arc::clone(self.gateway), Arc::clone(self.mapping));
                    let basis = PageBasis { gateway, mapping, versions };
                    cache.keep(self.page_name(), basis, &page, validators);
                }
                page
            }
            Err(missing) => self.missing(&missing).await,
        }
    }

    pub(crate) fn page_name(&self) -> PageName {
        PageName { target: self.target.clone(), form: self.form }
    }

    /// The versions of the mirrored collections. `None` if they cannot be read.
    pub(crate) async fn versions(&self) -> Option<Versions> {
        let mut versions = Versions::new();
        for prefix in mirrored_formats(self.store, self.mapping).await.ok()? {
            let version = self.store.version(RepositoryId(self.mapping.id()), Prefix(&prefix)).await.ok()?;
            versions.push((prefix, version));
        }
        Some(versions)
    }

    /// The response in place of a record.
    pub(crate) async fn missing(&self, missing: &Missing) -> Response {
        let SourceFacts { name, granularity } = SourceFacts::read(self.store, self.mapping.id()).await;
        let (site, repository_name) = (&self.gateway.site, name.as_str());
        let address = self.address(None);
        match missing {
            Missing::Unknown => notice(404, self.form, plain::UNKNOWN_RECORD, || {
                UnknownRecordPage { site, repository_name, address }.render()
            }),
            Missing::Deleted { datestamp_secs } => {
                let deleted_at = from_secs(*datestamp_secs, granularity);
                notice(410, self.form, plain::RECORD_DELETED, || {
                    DeletedRecordPage { site, repository_name, address, deleted_at: &deleted_at }.render()
                })
            }
            Missing::NotShown(reason) => self.not_shown(site, repository_name, *reason),
        }
    }

    fn not_shown(&self, site: &Site, repository_name: &str, reason: NoRecordReason) -> Response {
        let address = self.address(None);
        let html = || NoRecordPage { site, repository_name, address, reason }.render();
        let failure = match reason {
            NoRecordReason::PagesOff | NoRecordReason::NotInView | NoRecordReason::LinksNotKnown => {
                return notice(404, self.form, reason.title(), html);
            }
            NoRecordReason::RepositoryRemoved | NoRecordReason::LeftView => {
                return notice(410, self.form, reason.title(), html);
            }
            NoRecordReason::ForPeopleOnly => return notice(403, self.form, reason.title(), html),
            NoRecordReason::NotHarvested | NoRecordReason::ViewUnreadable => {
                Failure::new(Reason::MirrorIncomplete, reason.title())
            }
            NoRecordReason::Damaged | NoRecordReason::Unreadable | NoRecordReason::SourceFailed => {
                Failure::new(Reason::Mirror, reason.title())
            }
        };
        notice(503, self.form, reason.title(), html)
            .with("Retry-After", failure.retry_after_secs.to_string())
            .with("Proxy-Status", failure.proxy_status())
    }

    fn address<'s>(&'s self, format: Option<&'s str>) -> RecordAddress<'s> {
        RecordAddress { repository: self.mapping.id(), identifier: &self.target.identifier, format }
    }
}

/// A record with everything on which its page depends.
pub(super) struct Rendering {
    pub(super) gateway: Arc<GatewayState>,
    pub(super) mapping: Arc<Mapping>,
    pub(super) target: RecordTarget,
    pub(super) form: RecordForm,
    pub(super) found: FoundRecord,
    pub(super) facts: SourceFacts,
}

impl Rendering {
    /// The length of the records, in bytes.
    pub(super) fn xml_bytes(&self) -> usize {
        self.found.record.bytes.len() + if self.shows_best() { 0 } else { self.found.item.bytes() }
    }

    /// Whether the page shows the record that describes the item.
    fn shows_best(&self) -> bool {
        self.found.formats.iter().any(|tab| tab.is_default && tab.is_current)
    }

    /// Whether the response may be used for a while. Links as JSON are as of the response, and a page without the links that
    /// it should have is soon a better one.
    fn may_be_kept(&self) -> bool {
        self.form != RecordForm::LinksJson && self.found.related != Related::NotReady
    }

    /// Whether the page can be at the source.
    fn may_redirect(&self) -> bool {
        self.mapping.records == RecordPages::Link
            && self.form == RecordForm::Html
            && self.target.format.is_none()
    }

    /// The response to a client that has this version of the page.
    pub(super) fn unchanged(&self, headers: &HeaderMap) -> Option<Response> {
        let is_known = !self.may_redirect() && self.validators().are_known(headers);
        is_known.then(|| self.with_head(Response::new(304, self.form.content_type(), "")))
    }

    fn with_head(&self, page: Response) -> Response {
        let cache_control =
            if self.may_be_kept() && !is_listed(self.form) { CACHE_CONTROL } else { NO_CACHE };
        let page = self.validators().add_to(page).with("Cache-Control", cache_control.to_owned());
        with_policies(page).compressible()
    }

    fn address<'s>(&'s self, format: Option<&'s str>) -> RecordAddress<'s> {
        RecordAddress { repository: self.mapping.id(), identifier: &self.target.identifier, format }
    }

    pub(super) fn render(&self) -> Result<Response, Missing> {
        let (found, facts) = (&self.found, &self.facts);
        let record = read_record(&found.record).map_err(damaged)?;
        let xml = || written(&record, &Header::of_source(&found.record, facts.granularity));
        match self.form {
            RecordForm::Xml => return Ok(self.description(format!("{XML_DECLARATION}{}\n", xml()))),
            RecordForm::RawMetadata => {
                let metadata = raw_metadata(&found.record).map_err(damaged)?;
                return Ok(self.description(metadata.ok_or(DAMAGED)?));
            }
            _ => {}
        }
        let document = document_of(&found.record, &record)?;
        let work = if self.shows_best() {
            found.item.describe_from(&document)
        } else {
            found.item.describe().ok_or(DAMAGED)?
        };
        let site = &self.gateway.site;
        let page_url = self.address(None).page(site.public_url());
        let landing_page = work.links.landing_page();
        let landing_page = landing_page.filter(|link| self.may_redirect() && link.url != page_url);
        if let Some(link) = landing_page {
            let page = Response::text(302, plain::RECORD_AT_SOURCE).with("Location", link.url.clone());
            return Ok(with_policies(page.with("Cache-Control", CACHE_CONTROL.to_owned())));
        }
        let signposts = || Signposts::new(&work, self.address(None), &self.formats(), site.public_url());
        let text = match self.form {
            RecordForm::JsonLd => {
                let same_as = found.related.same_as(site.public_url());
                format!("{:#}\n", json_ld_same_as(&work, Some(&page_url), &same_as))
            }
            RecordForm::LinksJson => {
                let Related::Known(related) = &found.related else {
                    return Err(Missing::NotShown(NoRecordReason::Unreadable));
                };
                format!("{:#}\n", related_json(related, self.address(None), site.public_url()))
            }
            RecordForm::BibTeX => bibtex(&work, &page_url),
            RecordForm::Ris => ris(&work, &page_url),
            RecordForm::CslJson => format!("{:#}\n", csl_json(&work, &page_url)),
            RecordForm::LinksetJson => format!("{:#}\n", signposts().linkset_json()),
            RecordForm::Linkset => signposts().linkset(),
            RecordForm::Html | RecordForm::Xml | RecordForm::RawMetadata => {
                let html = self.page(&document, &xml(), &work);
                let page = Response::new(200, self.form.content_type(), html);
                return Ok(self.with_head(with_links(page, signposts().headers().join(", "))));
            }
        };
        Ok(self.description(text))
    }

    /// The metadataPrefixes of the record, the default one first.
    fn formats(&self) -> Vec<&str> {
        let (default, others): (Vec<_>, Vec<_>) = self.found.formats.iter().partition(|tab| tab.is_default);
        default.into_iter().chain(others).map(|tab| tab.prefix.as_str()).collect()
    }

    /// The response with a form that describes the page. It links to the page.
    fn description(&self, text: String) -> Response {
        let page_url = self.address(None).page(self.gateway.site.public_url());
        let response = Response::new(200, self.form.content_type(), text);
        self.with_head(with_links(response, Signposts::header_of_descriptions(&page_url)))
    }

    fn page(&self, document: &RecordDocument, xml: &str, work: &WorkDescription) -> String {
        let page = RecordPage {
            site: &self.gateway.site,
            repository_name: &self.facts.name,
            address: self.address(self.target.format.as_deref()),
            document,
            xml,
            work,
            canonical: canonical_url(self.gateway.policy.canonical, work),
            formats: &self.found.formats,
            provenance: &self.provenance(),
            repairs: &self.found.repairs,
            related: &self.found.related,
        };
        page.render()
    }

    fn provenance(&self) -> Provenance {
        let (found, facts) = (&self.found, &self.facts);
        Provenance {
            source_datestamp: from_secs(found.record.datestamp_secs, facts.granularity),
            stamp: (found.origin == RecordOrigin::Mirror)
                .then(|| from_secs(found.record.stamp_secs, Granularity::Second)),
        }
    }

    /// The validators of the page. The tag changes with everything on which the page depends.
    fn validators(&self) -> Validators {
        let (found, facts) = (&self.found, &self.facts);
        let version = |record: &StoredRecord| {
            (record.stamp_secs, record.sequence, record.datestamp_secs, record.set_specs.clone())
        };
        let depends_on = format!(
            "{:?}",
            (
                &self.gateway.version,
                (self.mapping.id(), self.mapping.records),
                (&facts.name, facts.granularity.name(), &self.target, self.form, &found.formats),
                (
                    version(&found.record),
                    found.item.records().map(version).collect::<Vec<_>>(),
                    &found.repairs
                ),
                &found.related,
            )
        );
        if found.origin == RecordOrigin::Source {
            // A source may change a record without its datestamp.
            let tag = fingerprint([depends_on.as_bytes(), &found.record.bytes]);
            return Validators { tag, modified_secs: None };
        }
        // Links change without the record.
        let is_record_alone = found.related.is_empty();
        Validators {
            tag: fingerprint([depends_on.as_bytes()]),
            modified_secs: is_record_alone.then_some(found.record.stamp_secs.max(found.item.stamp_secs())),
        }
    }
}

fn damaged(_: Failure) -> Missing {
    DAMAGED
}

/// The URL of another page that search engines should show for a work; `None` if it is our page.
pub(super) fn canonical_url(policy: CanonicalPage, work: &WorkDescription) -> Option<&str> {
    match policy {
        CanonicalPage::Source => work.links.canonical(&work.identifier).map(|link| link.url.as_str()),
        CanonicalPage::Own => None,
    }
}

/// A response in place of a record: the page, or one line for programs.
pub(crate) fn notice(status: u16, form: RecordForm, line: &str, html: impl FnOnce() -> String) -> Response {
    let page = match form {
        RecordForm::Html => Response::new(status, form.content_type(), html()),
        _ => Response::text(status, line),
    };
    let cache_control = match status {
        404 | 410 if is_listed(form) => NO_CACHE,
        // The next harvest can find the record.
        404 => "public, max-age=60",
        410 => CACHE_CONTROL,
        _ => "no-store",
    };
    with_policies(page.with("Cache-Control", cache_control.to_owned()))
}

/// Adds a `Link` header, unless clients may not accept its length: its URL contains an identifier or a query.
pub(crate) fn with_links(page: Response, links: String) -> Response {
    if links.len() > LINK_HEADERS_BYTES_MAX { page } else { page.with("Link", links) }
}

/// Adds what all responses have in common. XML has the policy too: a browser executes script in it.
pub(crate) fn with_policies(page: Response) -> Response {
    page.with("Content-Security-Policy", CONTENT_SECURITY_POLICY.to_owned())
        .with("Referrer-Policy", "strict-origin-when-cross-origin".to_owned())
        .with("Vary", "Accept, Accept-Encoding".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_links_are_left_out_of_the_headers() {
        for (length, is_sent) in [(LINK_HEADERS_BYTES_MAX, true), (LINK_HEADERS_BYTES_MAX + 1, false)] {
            let page = with_links(Response::no_content(), "x".repeat(length));
            assert_eq!(page.headers.iter().any(|(name, _)| *name == "Link"), is_sent, "{length}");
        }
    }
}
