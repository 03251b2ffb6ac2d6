//! A tape that is being built, whatever its records come from.

use std::path::Path;

use oaimend_base::clock::{Clock as _, SystemClock, utc_datetime};
use oaimend_tape::{BuiltTape, OnDuplicate, TapeBuild, TapeDescription, TapeError};

use super::{PROGRESS_RECORDS, failure};
use crate::cli::exit::Failure;
use crate::cli::progress::ProgressLine;

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
