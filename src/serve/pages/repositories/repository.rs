//! Gathers what the page of a repository shows.

use super::check_report::last_check;
use super::description::{KnownLists, identification, known_lists};
use super::overview::{changing, without_counters};
use super::summary::{DAYS_SHOWN, mirror_status, summary};
use crate::config::{Mapping, ServeFrom};
use crate::serve::pages::state::GatewayState;
use crate::serve::response::Response;
use crate::serve::served::ServedRepositories;
use http::HeaderMap;
use oaimend_mirror::status::{CoveredWindow, FormatStatus, RepositoryStatus};
use oaimend_oai::UnixSecs;
use oaimend_oai::datestamp::{Granularity, from_secs, to_secs};
use oaimend_pages::html::RepositoryPage;
use oaimend_pages::repository::{
    FormatDetails, MirrorDetails, RepositoryDetails, SetDetails, Timeline, TimelineRow, TimelineWindow,
};
use oaimend_store::{ListedFormat, ListedSet};
use std::sync::Arc;

/// Maximum number of repairs on a page.
const REPAIRS_MAX: usize = 10;
/// Maximum number of sets on a page.
const SETS_MAX: usize = 100;

/// The page of a repository.
pub(crate) async fn repository(
    served: &ServedRepositories,
    gateway: &GatewayState,
    mapping: &Arc<Mapping>,
    headers: &HeaderMap,
) -> Response {
    let details = details(served, mapping).await;
    let page = RepositoryPage { site: &gateway.site, details: &details, operator: None };
    let html = page.render();
    let summary = without_counters(details.summary);
    let shown = RepositoryDetails { summary, repairs: Vec::new(), failures: Vec::new(), ..details };
    changing(served, html, &(&gateway.version, shown), headers)
}

/// What the page of a repository shows. What the mirror cannot read is left out.
pub(crate) async fn details(served: &ServedRepositories, mapping: &Arc<Mapping>) -> RepositoryDetails {
    let status = mirror_status(served, mapping).await;
    let identification = identification(served, mapping).await.unwrap_or_default();
    let nothing = KnownLists { formats: None, sets: None };
    let KnownLists { formats, sets } = known_lists(served, mapping).await.unwrap_or(nothing);
    let summary = summary(served, mapping, identification.name.clone(), &status);
    let status = status.ok().flatten();
    let earliest = identification.earliest_datestamp.as_deref();
    let mirror = status.as_ref().map(|status| mirror_details(served, mapping, status, earliest));
    let (repairs, failures) = served.store.activity.read(mapping.id(), |activity| {
        let repairs = activity.frequent_repairs(served.clock.now_secs(), DAYS_SHOWN, REPAIRS_MAX);
        (repairs, activity.failures().cloned().collect())
    });
    let sizes = status.as_ref().map(|status| status.formats.as_slice()).unwrap_or_default();
    let left_out_sets = sets.as_ref().map_or(0, |sets| sets.len().saturating_sub(SETS_MAX));
    RepositoryDetails {
        summary,
        identification,
        formats: formats.map(|formats| format_details(formats, sizes)),
        sets: sets.map(|sets| sets.into_iter().take(SETS_MAX).map(set_details).collect()),
        left_out_sets,
        mirror,
        repairs,
        failures,
        check: last_check(served, mapping).await,
    }
}

fn format_details(formats: Vec<ListedFormat>, sizes: &[FormatStatus]) -> Vec<FormatDetails> {
    let details = |ListedFormat { prefix, schema: _, namespace }: ListedFormat| FormatDetails {
        records: sizes.iter().find(|size| size.prefix == prefix).map(|size| (size.records, size.deleted)),
        prefix,
        namespace,
    };
    formats.into_iter().map(details).collect()
}

fn set_details(ListedSet { set_spec, name }: ListedSet) -> SetDetails {
    SetDetails { set_spec, name }
}

fn mirror_details(
    served: &ServedRepositories,
    mapping: &Mapping,
    status: &RepositoryStatus,
    earliest: Option<&str>,
) -> MirrorDetails {
    let runs = served.mirror.runs.of(mapping.id());
    let next_due_secs = if runs.running.is_none() { runs.next_due_secs } else { None };
    let last = status.last_harvest.as_ref();
    MirrorDetails {
        next_harvest_at: next_due_secs.map(|secs| from_secs(secs, Granularity::Second)),
        last_harvest_at: last.map(|last| last.ended_at.clone()),
        last_changes: last.map_or((0, 0), |last| (last.stored, last.deleted)),
        missing: status.formats.iter().map(|format| format.missing).sum(),
        timeline: timeline(status, earliest),
        has_own_url: mapping.serve != ServeFrom::Mirror,
    }
}

/// The windows of all formats. The axis begins with the earliest datestamp, and ends with the last harvest.
fn timeline(status: &RepositoryStatus, earliest: Option<&str>) -> Option<Timeline> {
    let bounds = status.formats.iter().flat_map(|format| &format.coverage);
    let bounds = bounds.flat_map(|window| [window.from.as_deref(), window.until.as_deref()]).flatten();
    let ended = status.last_harvest.as_ref().map(|last| last.ended_at.as_str());
    let places: Vec<UnixSecs> = bounds.chain(ended).chain(earliest).filter_map(to_secs).collect();
    let first = earliest.and_then(to_secs).or(places.iter().min().copied())?;
    let last = places.iter().max().copied()?;
    let row = |format: &FormatStatus| {
        let windows = format.coverage.iter().map(timeline_window).collect();
        TimelineRow::new(&format.prefix, windows, (first, last))
    };
    let rows: Vec<TimelineRow> = status.formats.iter().map(row).collect();
    let day = |secs| from_secs(secs, Granularity::Day);
    (!rows.is_empty() && first < last).then(|| Timeline { from: day(first), until: day(last), rows })
}

fn timeline_window(CoveredWindow { from, until }: &CoveredWindow) -> TimelineWindow {
    let text = match (from, until) {
        (None, None) => "complete".to_owned(),
        (None, Some(until)) => format!("until {until}"),
        (Some(from), None) => format!("from {from}"),
        (Some(from), Some(until)) => format!("{from} to {until}"),
    };
    let secs = |time: &Option<String>| time.as_deref().and_then(to_secs);
    TimelineWindow { from_secs: secs(from), until_secs: secs(until), text }
}
