//! Reads from the stores what was found about a source in seven days.

use crate::config::Mapping;
use crate::provider_report::text::{ProviderReport, REPAIRS_MAX, WeekFindings, render};
use oaimend_crosswalks::Unconverted;
use oaimend_oai::UnixSecs;
use oaimend_oai::datestamp::{Granularity, from_secs};
use oaimend_pages::repository::CheckResult;
use oaimend_store::{DayCounts, QuarantineError, QuarantineQuery, QuarantineState, RepositoryId, Store};
use url::Url;

const DAYS: usize = 7;
const DAY_SECS: i64 = 86_400;

/// The report about the seven days that end with the day of `last_day_secs`, in seconds since 1970. `None` if there is
/// nothing to report. `public_url` is that of oaimend, `docs_url` the address of `docs/reference/`.
///
/// # Errors
///
/// The quarantine cannot be read.
pub async fn week_report(
    store: &Store,
    mapping: &Mapping,
    last_day_secs: UnixSecs,
    public_url: &str,
    docs_url: Option<&Url>,
) -> Result<Option<ProviderReport>, QuarantineError> {
    let findings = week_findings(store, mapping, last_day_secs).await?;
    // A source can echo its credentials.
    let masked = |text: &str| mapping.source.secrets().mask_text(text);
    let report = render(&findings, public_url, docs_url);
    Ok(report.map(|report| ProviderReport { text: masked(&report.text), ..report }))
}

async fn week_findings(
    store: &Store,
    mapping: &Mapping,
    last_day_secs: UnixSecs,
) -> Result<WeekFindings, QuarantineError> {
    let day = |days_ago: i64| from_secs(last_day_secs.minus(days_ago * DAY_SECS), Granularity::Day);
    let days = [day(6), day(0)];
    let is_within = |stamp: &str| {
        stamp.get(..days[0].len()).is_some_and(|day| (days[0].as_str()..=days[1].as_str()).contains(&day))
    };
    let mut findings = store.activity.read(mapping.id(), |activity| {
        let mut counts = DayCounts::default();
        activity.last_days(last_day_secs, DAYS).into_iter().for_each(|day| counts.add(day));
        WeekFindings {
            counts,
            repairs: activity.frequent_repairs(last_day_secs, DAYS, REPAIRS_MAX + 1),
            failures: activity.failures().filter(|failure| is_within(&failure.at)).cloned().collect(),
            ..WeekFindings::default()
        }
    });
    findings.base_url = mapping.source.shown_base_url();
    // The source has repaired the resolved records.
    let open = QuarantineQuery { state: Some(QuarantineState::Open), ..QuarantineQuery::default() };
    let quarantined = store.quarantine.list(RepositoryId(mapping.id()), open).await?.into_iter();
    findings.quarantined = quarantined
        .map(|(_, entry)| entry)
        // A record without a crosswalk is in order in the format that the source has.
        .filter(|entry| is_within(&entry.last_seen) && Unconverted::from_name(&entry.why).is_none())
        .collect();
    findings.quarantined.sort_by(|one, other| other.last_seen.cmp(&one.last_seen));
    let (reports, id) = (store.check_reports.clone(), mapping.id().to_owned());
    let report = tokio::task::spawn_blocking(move || reports.find(&id)).await;
    let report = report.map_err(|error| QuarantineError::Stopped(error.to_string()))?;
    let check = report.and_then(|report| CheckResult::read(&report, &mapping.source.masked_base_url()));
    findings.check = check.filter(|check| is_within(&check.checked_at));
    findings.days = days;
    Ok(findings)
}
