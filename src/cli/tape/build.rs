//! `oaimend tape build`: writes a tape and its index.

use std::path::Path;

use oaimend_base::clock::{Clock as _, SystemClock, utc_datetime};
use oaimend_tape::{BuiltTape, OnDuplicate, TapeBuild, TapeDescription, TapeError};
use serde_json::json;

use super::arguments::BuildArguments;
use super::{PROGRESS_RECORDS, catalog_json, describe, failure, from_files, from_mirror, from_source};
use crate::cli::data_arguments::{create_files_as, create_private_files};
use crate::cli::exit::{Exit, Failure, print, print_message};
use crate::cli::output_format::{OutputFormat, format_json};
use crate::cli::progress::ProgressLine;
use crate::cli::state::IfAbsent;

/// A tape that is being built, with its progress.
pub(super) struct Building<'a> {
    out: &'a Path,
    build: TapeBuild,
    progress: ProgressLine,
}

/// What a tape is built from, beside its records.
pub(super) struct Selection<'a> {
    /// Only these formats; empty: all.
    pub(super) prefixes: &'a [String],
    /// Only records of this set.
    pub(super) set: Option<&'a str>,
    /// Whether a tape is written although records are missing.
    pub(super) accepts_gaps: bool,
}

pub(super) fn run(arguments: BuildArguments) -> Result<Exit, Failure> {
    let BuildArguments { out, files, from_mirror, from, set, prefix, accept_gaps, format, data } = arguments;
    let selection = Selection { prefixes: &prefix, set: set.as_deref(), accepts_gaps: accept_gaps };
    if out.is_dir() {
        return Err(Failure::usage(format_args!(
            "{} is a folder; expected the file of a tape",
            out.display()
        )));
    }
    let mask = create_private_files();
    let built = match (from_mirror, from) {
        (Some(id), _) => {
            let api = data.open(IfAbsent::ReadEmpty)?;
            // The tape is for others, unlike the data folder.
            create_files_as(mask);
            from_mirror::build(&out, &api, &id, &selection)?
        }
        (None, Some(url)) => from_source::build(&out, &url, &selection, mask)?,
        (None, None) => {
            create_files_as(mask);
            from_files::build(&out, &files, &selection)?
        }
    };
    let name = out.display().to_string();
    let BuiltTape { catalog, replaced, replaced_count, xml_bytes, file_bytes } = built;
    if replaced_count > 0 {
        let names = replaced.join(", ");
        let more = if replaced_count > replaced.len() as u64 { ", …" } else { "" };
        print_message(format_args!(
            "{name}: {replaced_count} records are left out, because a later state of each is in the tape: {names}{more}"
        ));
    }
    match format {
        OutputFormat::Text => {
            let sizes = format!("{file_bytes} bytes for {xml_bytes} bytes of XML");
            print(format!("{name}: {}; {sizes}\n", describe(&catalog)).as_bytes())
        }
        OutputFormat::Json => {
            let mut value = catalog_json(&name, &catalog);
            value["replaced"] = json!(replaced_count);
            value["xml_bytes"] = json!(xml_bytes);
            value["file_bytes"] = json!(file_bytes);
            print(format_json(&value).as_bytes())
        }
    }
}

impl<'a> Building<'a> {
    /// Begins a tape with this description. Its id, time and software are added.
    pub(super) fn begin(out: &'a Path, description: TapeDescription) -> Result<Self, Failure> {
        let description = TapeDescription {
            id: new_id()?,
            created_at: utc_datetime(SystemClock.now()),
            software: concat!("oaimend ", env!("CARGO_PKG_VERSION")).to_owned(),
            ..description
        };
        let build = TapeBuild::begin(out, description);
        let build = build.map_err(|error| failure(&out.display().to_string(), error, ""))?;
        Ok(Self { out, build, progress: ProgressLine::default() })
    }

    /// The tape, to add records.
    pub(super) fn tape(&mut self) -> &mut TapeBuild {
        &mut self.build
    }

    /// Shows the progress on a terminal from time to time.
    pub(super) fn show(&self, what: &str) {
        if self.build.count().is_multiple_of(PROGRESS_RECORDS) {
            self.progress.show(&self.out.display().to_string(), what, self.build.count(), None);
        }
    }

    /// The failure of a record or of the disk.
    pub(super) fn failure(&self, error: TapeError) -> Failure {
        failure(&self.out.display().to_string(), error, "; no tape was written")
    }

    /// Writes the index, and puts both files in their place.
    pub(super) fn finish(self, on_duplicate: OnDuplicate) -> Result<BuiltTape, Failure> {
        let name = self.out.display().to_string();
        self.progress.end(&name);
        if self.build.count() == 0 {
            return Err(Failure::incomplete(format_args!(
                "{name}: there are no records; no tape was written"
            )));
        }
        self.build.finish(on_duplicate).map_err(|error| failure(&name, error, "; no tape was written"))
    }
}

/// A new identifier of a tape: a random UUID (RFC 9562, section 5.4).
fn new_id() -> Result<String, Failure> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::io("read", Path::new("random numbers"), &std::io::Error::other(error)))?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let digits = hex::encode(bytes);
    let groups = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    Ok(format!("urn:uuid:{}", groups.join("-")))
}
