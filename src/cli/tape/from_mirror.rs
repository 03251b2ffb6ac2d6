//! A tape of a mirrored repository.
//!
//! The records come through the admin API, so the server that uses the data folder goes on. A record that changes
//! meanwhile comes again at the end of its list, and the tape keeps that state. A gap that is known at the begin or at the
//! end is a gap of the tape.

use std::path::Path;

use oaimend_mirror::export::ExportedRecord;
use oaimend_mirror::status::{FormatStatus, RepositoryStatus};
use oaimend_oai::datestamp::Granularity;
use oaimend_oai::set_spec;
use oaimend_store::{ListedFormat, ListedSet};
use oaimend_tape::{BuiltTape, OnDuplicate, TapeDescription, TapeFormat, TapeGap, TapeRecord, TapeSet};
use serde::Deserialize;

use super::building::{Building, Selection};
use crate::cli::admin_api::{AdminApi, Refusal};
use crate::cli::exit::Failure;

/// What the mirror knows of a repository: the result of `GET /-/mirror/ID/description`.
#[derive(Deserialize)]
struct Description {
    base_url: Option<String>,
    name: Option<String>,
    admin_emails: Vec<String>,
    granularity: String,
    formats: Vec<ListedFormat>,
    sets: Vec<ListedSet>,
}

/// Writes the tape of a repository. `id` is its id in the mirror.
pub(super) fn build(
    out: &Path,
    api: &AdminApi,
    id: &str,
    selection: &Selection<'_>,
) -> Result<BuiltTape, Failure> {
    let formats = complete_formats(api, id, selection)?;
    let description: Description = send(api, &format!("/-/mirror/{id}/description"))?.read()?;
    let granularity = Granularity::from_name(&description.granularity).unwrap_or(Granularity::Second);
    let mut building = Building::begin(out, describe(description, &formats, selection.set))?;
    for FormatStatus { prefix, .. } in &formats {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.append_pair("format", "jsonl").append_pair("prefix", prefix);
        query.extend_pairs(selection.set.iter().map(|set| ("set", set)));
        let records = send(api, &format!("/-/mirror/{id}/records?{}", query.finish()))?;
        for record in records.into_lines::<ExportedRecord<'static>>() {
            let ExportedRecord { identifier, datestamp, deleted, set_specs, record } = record?;
            let read = TapeRecord::from_oai(&identifier, prefix, &record).map_err(|error| {
                let problem =
                    format!("the stored record {} cannot be read: {error}", identifier.escape_debug());
                Failure::incomplete(format!("{id}: {problem}; run: oaimend mirror verify {id}"))
            })?;
            let datestamp = granularity.fitted(&datestamp);
            let set_specs = set_specs.into_owned();
            let record = TapeRecord { datestamp, is_deleted: deleted, set_specs, ..read };
            building.tape().add(&record).map_err(|error| building.failure(error))?;
            building.show(prefix);
        }
    }
    for gap in new_gaps(id, &formats, complete_formats(api, id, selection)?)? {
        building.tape().add_gap(gap);
    }
    building.finish(OnDuplicate::KeepLast)
}

/// What is missing after the records were read, and was not before. The tape says it too.
fn new_gaps(id: &str, before: &[FormatStatus], after: Vec<FormatStatus>) -> Result<Vec<TapeGap>, Failure> {
    let mut gaps = Vec::new();
    for FormatStatus { prefix, missing, .. } in before {
        let Some(now) = after.iter().find(|format| format.prefix == *prefix) else {
            return Err(Failure::incomplete(format!(
                "{id} {prefix}: the mirror has removed the format while it was read, so no tape is written; run the same \
                 command again"
            )));
        };
        let records = now.missing.saturating_sub(*missing);
        if records > 0 {
            gaps.push(TapeGap { source: prefix.clone(), records });
        }
    }
    Ok(gaps)
}

/// The wanted formats. Each was harvested to its end at least once.
fn complete_formats(
    api: &AdminApi,
    id: &str,
    selection: &Selection<'_>,
) -> Result<Vec<FormatStatus>, Failure> {
    let status: RepositoryStatus = send(api, &format!("/-/mirror/{id}"))?.read()?;
    let is_wanted =
        |format: &FormatStatus| selection.prefixes.is_empty() || selection.prefixes.contains(&format.prefix);
    let formats: Vec<FormatStatus> = status.formats.into_iter().filter(is_wanted).collect();
    let has_format = |prefix: &&String| formats.iter().any(|format| format.prefix == **prefix);
    if let Some(absent) = selection.prefixes.iter().find(|prefix| !has_format(prefix)) {
        let text = format!("the mirror has no format {} of {id}", absent.escape_debug());
        return Err(Failure::usage(text));
    }
    if formats.is_empty() {
        return Err(Failure::incomplete(format!("{id} was never harvested; run: oaimend mirror sync {id}")));
    }
    for FormatStatus { prefix, complete_until, damaged, missing, .. } in &formats {
        if complete_until.is_none() {
            let text =
                format!("{id} {prefix}: the first harvest is not complete; run: oaimend mirror sync {id}");
            return Err(Failure::incomplete(text));
        }
        if *damaged > 0 {
            return Err(Failure::incomplete(format!(
                "{id} {prefix}: {damaged} records are damaged; run: oaimend mirror sync {id}; if the source is gone: \
                 oaimend mirror accept-loss {id}"
            )));
        }
        if *missing > 0 && !selection.accepts_gaps {
            return Err(Failure::incomplete(format!(
                "{id} {prefix}: {missing} records are missing, so no tape is written; oaimend mirror status says more, \
                 and --accept-gaps writes a tape that says how many are missing"
            )));
        }
    }
    Ok(formats)
}

fn describe(description: Description, formats: &[FormatStatus], set: Option<&str>) -> TapeDescription {
    let is_stored = |prefix: &str| formats.iter().any(|format| format.prefix == prefix);
    let is_within = |listed: &str| set.is_none_or(|set| set_spec::is_within(listed, set));
    let listed_formats = description.formats.into_iter().filter(|format| is_stored(&format.prefix));
    let sets = description.sets.into_iter().filter(|listed| is_within(&listed.set_spec));
    let gaps = formats.iter().filter(|format| format.missing > 0);
    TapeDescription {
        base_url: description.base_url,
        repository_name: description.name,
        admin_emails: description.admin_emails,
        formats: listed_formats
            .map(|ListedFormat { prefix, schema, namespace }| TapeFormat { prefix, schema, namespace })
            .collect(),
        sets: sets.map(|ListedSet { set_spec, name, .. }| TapeSet { set_spec, name }).collect(),
        gaps: gaps.map(|format| TapeGap { source: format.prefix.clone(), records: format.missing }).collect(),
        ..TapeDescription::default()
    }
}

fn send<'a>(api: &'a AdminApi, target: &str) -> Result<crate::cli::admin_api::ApiResult<'a>, Failure> {
    api.send("GET", target)?.map_err(|Refusal { status, error }| match status {
        404 => Failure::incomplete(error),
        400 => Failure::usage(error),
        _ => Failure::in_use(error),
    })
}
