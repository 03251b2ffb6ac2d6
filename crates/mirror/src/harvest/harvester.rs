//! The harvest of a whole repository: its description, then each of its formats.

use crate::harvest::catalog::{read_formats, read_sets};
use crate::harvest::collection_writer::CollectionWriter;
use crate::harvest::damaged::refetch_damaged;
use crate::harvest::format_harvest::FormatHarvest;
use crate::harvest::gaps::{adopt_counted_gaps, end_gaps, fetch_gaps};
use crate::harvest::page::{Harvester, Interruption};
use crate::harvest::repeated_pages::RepeatedPages;
use crate::harvest::results::record_result;
use crate::harvest::set_members::{
    check_headers, forget_members, list_members, note_records_without_sets, note_unrequested_sets,
};
use crate::harvest::settings::{HarvestError, HarvestSettings, HarvestStatus, HarvestSummary};
use crate::harvest::sweep::{SweepResult, sweep_if_due};
use crate::harvest::unlisted::{delete_suffixes, delete_unlisted};
use crate::harvest::windows::SourceTimes;
use oaimend_oai::datestamp::{self, Granularity};
use oaimend_oai::{ErrorCode, Request, UnixSecs};
use oaimend_repository::{Failure, IdentifyFields, Reason, ResponseSummary};
use oaimend_rules::ResponseClocks;
use oaimend_store::{
    Catalog, CompleteHarvest, Document, HarvestStart, ListedSet, MirrorError, Prefix, RepositoryState,
    SETS_MAX, update_repository_state,
};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// The description of a source at the begin of a harvest.
struct Description {
    prefixes: Vec<String>,
    times: SourceTimes,
    clocks: ResponseClocks,
    /// Whether deleted records may vanish.
    loses_deletions: bool,
}

impl Harvester {
    /// Harvests the repository: continues an interrupted harvest, or harvests the changes since the last one.
    ///
    /// # Errors
    ///
    /// The source does not describe itself, or the store fails. A failure of one format is in the summary.
    pub async fn run(
        &self,
        settings: &HarvestSettings,
        observe: &(dyn Fn(&HarvestStatus) + Send + Sync),
    ) -> Result<HarvestSummary, HarvestError> {
        let began_secs = self.now_secs();
        let result = harvest_formats(self, settings, observe).await;
        if let Err(error) = record_result(self, began_secs, &result).await {
            tracing::warn!(repo = self.id, %error, "the result of a harvest is not stored");
        }
        result
    }
}

async fn harvest_formats(
    harvest: &Harvester,
    settings: &HarvestSettings,
    observe: &(dyn Fn(&HarvestStatus) + Send + Sync),
) -> Result<HarvestSummary, HarvestError> {
    harvest.store.verify_suspected(harvest.repository()).await?;
    let description = describe(harvest, settings).await?;
    let mut summary = HarvestSummary::default();
    for prefix in &description.prefixes {
        let run = FormatRun { harvest, settings, description: &description, prefix };
        let end = run.harvest(&mut summary, observe).await;
        let progress = harvest.store.progress(harvest.repository(), Prefix(prefix)).await?;
        summary.missing = summary.missing.saturating_add(progress.missing_items());
        summary.unrepairable = summary.unrepairable.saturating_add(progress.gaps.unrepairable());
        summary.duplicates.add(progress.duplicates.unwrap_or_default().counts);
        match end {
            Ok(()) => summary.complete.push(prefix.clone()),
            Err(interruption) => {
                let is_store = matches!(interruption, Interruption::Store(_));
                summary.incomplete.push((prefix.clone(), interruption.into()));
                if is_store {
                    // The other formats would fail as well, after requests to the source.
                    break;
                }
            }
        }
        harvest.pause(settings.request_gap).await;
    }
    if !settings.harvests_sets {
        match check_headers(harvest, settings, &summary.complete).await {
            Err(Interruption::Source(failure)) => tracing::warn!(
                repo = harvest.id,
                details = failure.details_for_operators(),
                "the sets cannot be compared with the headers; the results of the last comparison are kept"
            ),
            result => result?,
        }
    }
    Ok(summary)
}

/// The harvest of one format.
struct FormatRun<'h> {
    harvest: &'h Harvester,
    settings: &'h HarvestSettings,
    description: &'h Description,
    prefix: &'h str,
}

impl FormatRun<'_> {
    async fn harvest(
        &self,
        summary: &mut HarvestSummary,
        observe: &(dyn Fn(&HarvestStatus) + Send + Sync),
    ) -> Result<(), Interruption> {
        let Self { harvest, settings, description, prefix } = *self;
        let mut state = harvest.store.repository_state(harvest.repository()).await?;
        let state_before = state.clone();
        delete_suffixes(harvest, prefix, settings.duplicates).await?;
        let mut writer = CollectionWriter::open(harvest, prefix).await?;
        adopt_counted_gaps(&mut writer.progress);
        let needs_whole_lists = writer.begin_duplicates(settings.duplicates).await?;
        let mark = writer.before.and_then(|reached| writer.progress.gaps.next_harvest(reached));
        let from_secs = mark.map(|mark| description.times.aligned(mark.from_secs_at(&description.clocks)));
        let began_whole = writer.progress.start.is_some_and(|start| start.from_secs.is_none());
        let continues = writer.progress.open_list.is_some() || !writer.progress.sets_done.is_empty();
        let is_whole = needs_whole_lists || continues && began_whole;
        let from_secs = if is_whole { None } else { from_secs };
        if !continues {
            let state = mark.map(CompleteHarvest::from);
            writer.progress.start = Some(HarvestStart { state, from_secs });
        }
        if let Some(start) = writer.progress.start {
            writer.before = start.state.map(CompleteHarvest::mark);
        }
        let before = writer.before;
        let mut format = FormatHarvest {
            settings,
            writer,
            times: description.times,
            from_secs,
            state: &mut state,
            total_elements: None,
            observe,
        };
        let end = format.run().await;
        summary.counts.add(format.writer.counts);
        if format.writer.has_records_without_sets {
            note_records_without_sets(harvest, prefix).await?;
        }
        if settings.sets.is_empty()
            && let Some(total) = format.total_elements
        {
            summary.total_elements.insert(prefix.to_owned(), total);
        }
        save_state(harvest, &state_before, state).await?;
        end?;
        if settings.duplicates.needs_whole_lists() {
            return self.end_whole_lists(summary).await;
        }
        summary.counts.add(fetch_gaps(harvest, settings, prefix, before).await?);
        if !harvest.store.damaged(harvest.repository(), Prefix(prefix), None, 1).await?.is_empty() {
            forget_members(harvest, prefix).await?;
        }
        summary.counts.add(refetch_damaged(harvest, settings, prefix).await?);
        if description.loses_deletions {
            let SweepResult { counts, held, .. } =
                sweep_if_due(harvest, settings, prefix, from_secs.is_none()).await?;
            summary.counts.add(counts);
            if held > 0 {
                summary.held_deletions.push((prefix.to_owned(), held));
            }
        }
        if settings.harvests_sets {
            summary.counts.add(list_members(harvest, settings, prefix).await?);
        }
        Ok(())
    }
}

impl FormatRun<'_> {
    /// Ends a harvest whose records are chosen by their places in whole lists. No record is requested alone: the source
    /// can return another one with the same identifier.
    async fn end_whole_lists(&self, summary: &mut HarvestSummary) -> Result<(), Interruption> {
        let Self { harvest, settings, description, prefix } = *self;
        end_gaps(harvest, prefix).await?;
        let SweepResult { counts, held, .. } =
            delete_unlisted(harvest, settings, prefix, description.loses_deletions).await?;
        summary.counts.add(counts);
        if held > 0 {
            summary.held_deletions.push((prefix.to_owned(), held));
        }
        if settings.harvests_sets {
            summary.counts.add(list_members(harvest, settings, prefix).await?);
        }
        Ok(())
    }
}

/// Asks the source for its description, and stores it.
async fn describe(harvest: &Harvester, settings: &HarvestSettings) -> Result<Description, HarvestError> {
    let sent_at_secs = harvest.now_secs();
    let (identify, summary) = harvest.document(Request::identify()).await?;
    let Some(fields) = summary.page.identify.clone() else {
        let details = format!("{} does not answer Identify with its description", harvest.id);
        return Err(HarvestError::Source(Failure::new(Reason::Incomplete, details)));
    };
    harvest.store.save_document(harvest.repository(), Document::Identify, identify).await?;
    harvest.pause(settings.request_gap).await;
    let catalog = fetch_catalog(harvest, settings).await?;
    let listed = catalog.formats.iter().map(|format| format.prefix.clone());
    let prefixes = if settings.prefixes.is_empty() { listed.collect() } else { settings.prefixes.clone() };
    let catalog = note_unrequested_sets(harvest, &prefixes, catalog).await?;
    harvest.store.save_catalog(harvest.repository(), catalog).await?;
    let response_date = summary.page.response_date.as_deref().and_then(datestamp::to_secs);
    Ok(Description {
        prefixes,
        times: times_of(&fields, harvest.now_secs()),
        clocks: ResponseClocks {
            response_date_secs: response_date,
            http_date_secs: summary.page.http_date_secs,
            sent_at_secs,
        },
        loses_deletions: fields.deleted_record != "persistent",
    })
}

fn times_of(fields: &IdentifyFields, now_secs: UnixSecs) -> SourceTimes {
    SourceTimes {
        earliest_secs: datestamp::to_secs(&fields.earliest_datestamp).unwrap_or_default(),
        now_secs,
        granularity: Granularity::from_name(&fields.granularity).unwrap_or(Granularity::Day),
    }
}

/// The formats and sets of the source, and its responses in the store.
async fn fetch_catalog(harvest: &Harvester, settings: &HarvestSettings) -> Result<Catalog, HarvestError> {
    let (formats, summary) = harvest.document(Request::list_metadata_formats(None)).await?;
    if let Some(code) = summary.page.error {
        let details = format!("{} answers ListMetadataFormats with {}", harvest.id, code.name());
        return Err(HarvestError::Source(Failure::new(Reason::Configuration, details)));
    }
    let stored = harvest.store.catalog(harvest.repository()).await?;
    let formats_read = read_formats(&String::from_utf8_lossy(&formats));
    let set_members = stored.set_members;
    let mut catalog = Catalog { formats: formats_read, set_members, ..Catalog::default() };
    harvest.store.save_document(harvest.repository(), Document::ListMetadataFormats, formats).await?;
    catalog.sets = match fetch_sets(harvest, settings).await {
        Ok(sets) => sets,
        Err(Interruption::Source(failure)) => {
            // The names of sets are not worth the records.
            tracing::warn!(
                repo = harvest.id,
                details = failure.details_for_operators(),
                "the sets cannot be listed; the stored ones are kept"
            );
            stored.sets
        }
        Err(store) => return Err(store.into()),
    };
    Ok(catalog)
}

async fn fetch_sets(harvest: &Harvester, settings: &HarvestSettings) -> Result<Vec<ListedSet>, Interruption> {
    let (mut listed, mut bytes) = (Vec::new(), 0);
    let mut repeated = RepeatedPages::default();
    let mut request = Request::list_sets();
    let failed = |reason, what: &str| {
        let details = format!("the list of sets of {} {what}", harvest.id);
        Err(Interruption::Source(Failure::new(reason, details)))
    };
    for _ in 0..SET_PAGES_MAX {
        harvest.pause(settings.request_gap).await;
        let (page, summary) = harvest.document(request.clone()).await?;
        if let Some(code) = summary.page.error.filter(|code| *code != ErrorCode::NoSetHierarchy) {
            return failed(Reason::Incomplete, &format!("ends with {}", code.name()));
        }
        let page = read_sets(&String::from_utf8_lossy(&page));
        if hash_of_sets(&page).is_some_and(|page| repeated.note(page)) {
            return failed(Reason::Incomplete, "goes in circles");
        }
        bytes += page.iter().map(|set| set.set_spec.len() + set.name.len()).sum::<usize>();
        listed.extend(page);
        if listed.len() > SETS_MAX || bytes > LISTED_SETS_BYTES_MAX {
            let text = format!("has more than {SETS_MAX} sets or {LISTED_SETS_BYTES_MAX} bytes");
            return failed(Reason::TooLarge, &text);
        }
        if summary.end.has_concluded_end {
            // The stored sets that it does not list may still exist.
            let stored = harvest.store.catalog(harvest.repository()).await?.sets;
            let known: HashSet<String> = listed.iter().map(|listed| listed.set_spec.clone()).collect();
            listed.extend(stored.into_iter().filter(|stored| !known.contains(&stored.set_spec)));
            listed.truncate(SETS_MAX);
        }
        match next_page(&request, &summary) {
            Some(next) => request = next,
            None => return Ok(listed),
        }
    }
    failed(Reason::TooLarge, &format!("has more than {SET_PAGES_MAX} pages"))
}

/// The hash of the setSpecs of a page, in their order; `None` without a set.
fn hash_of_sets(page: &[ListedSet]) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    page.iter().for_each(|set| set.set_spec.hash(&mut hasher));
    (!page.is_empty()).then(|| hasher.finish())
}

/// Maximum length of all names and setSpecs of a list of sets, in bytes.
const LISTED_SETS_BYTES_MAX: usize = 32 << 20;
/// Maximum number of pages of a list of sets.
const SET_PAGES_MAX: usize = 10_000;

fn next_page(request: &Request, summary: &ResponseSummary) -> Option<Request> {
    let next = request.with_token(summary.page.token.clone()?);
    (next != *request).then_some(next)
}

async fn save_state(
    harvest: &Harvester,
    before: &RepositoryState,
    learned: RepositoryState,
) -> Result<(), MirrorError> {
    if *before == learned {
        return Ok(());
    }
    let RepositoryState { honours_windows, window_secs_max, .. } = learned;
    update_repository_state(&*harvest.store, harvest.repository(), |stored| {
        (stored.honours_windows, stored.window_secs_max) = (honours_windows, window_secs_max);
    })
    .await
}
