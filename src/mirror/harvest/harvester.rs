//! The harvest of a whole repository: its description, then each of its formats.

use crate::config::{Mapping, MirrorSettings};
use crate::mirror::harvest::catalog::{read_formats, read_sets};
use crate::mirror::harvest::damaged::refetch_damaged;
use crate::mirror::harvest::format_harvest::FormatHarvest;
use crate::mirror::harvest::page::{Harvester, Interruption};
use crate::mirror::harvest::sweep::{SweepResult, sweep};
use crate::mirror::harvest::windows::SourceTimes;
use crate::mirror::rules::{HarvestMark, ResponseClocks};
use crate::oai::datestamp::{self, Granularity};
use crate::oai::{ErrorCode, Request};
use crate::repository::{Account, Failure, IdentifyFields, Reason};
use crate::store::{Catalog, Committed, Document, MirrorError, RepositoryState};
use std::time::Duration;

/// How a repository is harvested.
#[derive(Clone, Debug, PartialEq)]
pub struct HarvestSettings {
    /// The formats; empty: every format that the source lists.
    pub prefixes: Vec<String>,
    /// The sets; empty: the whole repository.
    pub sets: Vec<String>,
    /// The pause between two requests.
    pub request_gap: Duration,
    /// Deletions that are found by comparison and need no confirmation.
    pub deletions: DeletionLimits,
    /// Accept all deletions that this harvest finds.
    pub accepts_deletions: bool,
}

/// How many vanished records are deleted without confirmation: more of them may be a broken source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeletionLimits {
    /// The share of the records of a format, 0 to 1.
    pub share_max: f64,
    /// This number of records is deleted in any case.
    pub records_min: u64,
}

impl Default for HarvestSettings {
    fn default() -> Self {
        Self {
            prefixes: Vec::new(),
            sets: Vec::new(),
            request_gap: Duration::ZERO,
            deletions: DeletionLimits { share_max: 0.05, records_min: 10 },
            accepts_deletions: false,
        }
    }
}

impl HarvestSettings {
    /// The settings of a mapping; the defaults if it has none.
    pub fn of(mapping: &Mapping) -> Self {
        let Some(MirrorSettings { prefixes, sets, request_gap, .. }) = mapping.mirror.clone() else {
            return Self::default();
        };
        Self { prefixes, sets, request_gap, ..Self::default() }
    }
}

/// The progress of a harvest, for its observer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HarvestStatus {
    /// The metadataPrefix.
    pub prefix: String,
    /// Records of the current list so far.
    pub records: u64,
    /// Records of the whole list, if the source says so.
    pub total: Option<u64>,
}

/// The result of a harvest.
#[derive(Debug, Default)]
pub struct HarvestSummary {
    /// The effects on the store.
    pub counts: Committed,
    /// Items that are missing: in quarantine, or too long.
    pub missing: u64,
    /// Deletions that wait for confirmation, by format.
    pub held_deletions: Vec<(String, u64)>,
    /// The formats that were harvested completely.
    pub complete: Vec<String>,
    /// The formats that were not, and why.
    pub incomplete: Vec<(String, HarvestError)>,
}

/// Why a harvest is not complete.
#[derive(Debug, thiserror::Error)]
pub enum HarvestError {
    /// The source failed.
    #[error("{}", .0.details)]
    Source(Failure),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] MirrorError),
}

impl From<Interruption> for HarvestError {
    fn from(interruption: Interruption) -> Self {
        match interruption {
            Interruption::Source(failure) => Self::Source(failure),
            Interruption::Store(error) => Self::Store(error),
        }
    }
}

/// The description of a source at the begin of a harvest.
struct Description {
    prefixes: Vec<String>,
    times: SourceTimes,
    clocks: ResponseClocks,
    /// Whether deleted records may vanish.
    loses_deletions: bool,
}

impl HarvestSummary {
    /// Whether every format was harvested completely.
    pub fn is_complete(&self) -> bool {
        self.incomplete.is_empty() && !self.complete.is_empty()
    }
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
        let description = describe(self, settings).await?;
        let mut summary = HarvestSummary::default();
        for prefix in &description.prefixes {
            match harvest_format(self, settings, &description, prefix, &mut summary, observe).await {
                Ok(()) => summary.complete.push(prefix.clone()),
                Err(interruption) => summary.incomplete.push((prefix.clone(), interruption.into())),
            }
            self.clock.pause(settings.request_gap).await;
        }
        Ok(summary)
    }
}

async fn harvest_format(
    harvest: &Harvester,
    settings: &HarvestSettings,
    description: &Description,
    prefix: &str,
    summary: &mut HarvestSummary,
    observe: &(dyn Fn(&HarvestStatus) + Send + Sync),
) -> Result<(), Interruption> {
    let mut state = harvest.store.repository_state(&harvest.id).await?;
    let before = state.clone();
    let progress = harvest.store.progress(&harvest.id, prefix).await?;
    let from_secs = progress.last_complete.map(|last| {
        let mark = HarvestMark::restore(last.from_secs, last.lead_secs);
        description.times.aligned(mark.from_secs_at(&description.clocks))
    });
    let mut format = FormatHarvest {
        harvest,
        settings,
        prefix,
        times: description.times,
        from_secs,
        state: &mut state,
        progress,
        counts: Committed::default(),
        missing: 0,
        observe,
    };
    let end = format.run().await;
    add(&mut summary.counts, format.counts);
    summary.missing += format.missing;
    save_state(harvest, &before, state).await?;
    end?;
    add(&mut summary.counts, refetch_damaged(harvest, settings, prefix).await?);
    if description.loses_deletions {
        let SweepResult { counts, held } = sweep(harvest, settings, prefix).await?;
        add(&mut summary.counts, counts);
        if held > 0 {
            summary.held_deletions.push((prefix.to_owned(), held));
        }
    }
    Ok(())
}

/// Asks the source for its description, and stores it.
async fn describe(harvest: &Harvester, settings: &HarvestSettings) -> Result<Description, HarvestError> {
    let sent_at_secs = harvest.now_secs();
    let (identify, account) = harvest.document(Request::identify()).await?;
    let Some(fields) = account.identify.clone() else {
        let details = format!("{} does not answer Identify with its description", harvest.id);
        return Err(HarvestError::Source(Failure::new(Reason::Incomplete, details)));
    };
    harvest.store.save_document(&harvest.id, Document::Identify, identify).await?;
    harvest.clock.pause(settings.request_gap).await;
    let catalog = fetch_catalog(harvest, settings).await?;
    let listed = catalog.formats.iter().map(|format| format.prefix.clone());
    let prefixes = if settings.prefixes.is_empty() { listed.collect() } else { settings.prefixes.clone() };
    harvest.store.save_catalog(&harvest.id, catalog).await?;
    let response_date = account.response_date.as_deref().and_then(datestamp::to_secs);
    Ok(Description {
        prefixes,
        times: times_of(&fields, harvest.now_secs()),
        clocks: ResponseClocks { response_date_secs: response_date, http_date_secs: None, sent_at_secs },
        loses_deletions: fields.deleted_record != "persistent",
    })
}

fn times_of(fields: &IdentifyFields, now_secs: i64) -> SourceTimes {
    SourceTimes {
        earliest_secs: datestamp::to_secs(&fields.earliest_datestamp).unwrap_or_default(),
        now_secs,
        granularity: Granularity::from_name(&fields.granularity).unwrap_or(Granularity::Day),
    }
}

/// The formats and sets of the source, and its responses in the store.
async fn fetch_catalog(harvest: &Harvester, settings: &HarvestSettings) -> Result<Catalog, HarvestError> {
    let (formats, account) = harvest.document(Request::list_metadata_formats(None)).await?;
    if let Some(code) = account.error {
        let details = format!("{} answers ListMetadataFormats with {}", harvest.id, code.name());
        return Err(HarvestError::Source(Failure::new(Reason::Configuration, details)));
    }
    let mut catalog = Catalog { formats: read_formats(&String::from_utf8_lossy(&formats)), sets: Vec::new() };
    harvest.store.save_document(&harvest.id, Document::ListMetadataFormats, formats).await?;
    let mut request = Request::list_sets();
    for _ in 0..SET_PAGES_MAX {
        harvest.clock.pause(settings.request_gap).await;
        let (sets, account) = harvest.document(request.clone()).await?;
        catalog.sets.extend(read_sets(&String::from_utf8_lossy(&sets)));
        match next_page(&request, &account) {
            Some(next) => request = next,
            None => return Ok(catalog),
        }
    }
    let details = format!("the list of sets of {} has more than {SET_PAGES_MAX} pages", harvest.id);
    Err(HarvestError::Source(Failure::new(Reason::TooLarge, details)))
}

/// Most pages of a list of sets.
const SET_PAGES_MAX: usize = 10_000;

fn next_page(request: &Request, account: &Account) -> Option<Request> {
    let is_list = account.error.is_none_or(|code| code == ErrorCode::NoSetHierarchy);
    let next = request.with_token(account.token.clone().filter(|_| is_list)?);
    (next != *request).then_some(next)
}

async fn save_state(
    harvest: &Harvester,
    before: &RepositoryState,
    mut state: RepositoryState,
) -> Result<(), MirrorError> {
    if *before == state {
        return Ok(());
    }
    // The other fields may have changed meanwhile.
    let stored = harvest.store.repository_state(&harvest.id).await?;
    state = RepositoryState {
        honours_windows: state.honours_windows,
        window_secs_max: state.window_secs_max,
        ..stored
    };
    harvest.store.save_repository_state(&harvest.id, state).await?;
    Ok(())
}

pub(crate) fn add(sum: &mut Committed, counts: Committed) {
    sum.stored += counts.stored;
    sum.deleted += counts.deleted;
    sum.touched += counts.touched;
    sum.unchanged += counts.unchanged;
}
