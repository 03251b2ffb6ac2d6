//! `oaimend mirror cat`: writes the records of a repository.

use std::io::{self, Write as _};
use std::path::Path;

use clap::{Args, ValueEnum};
use oaimend_oai::UnixSecs;
use oaimend_oai::datestamp::{Granularity, from_secs, to_last_second, to_secs};

use super::super::admin_api::{AdminApi, Refusal};
use super::super::exit::{Exit, Failure};
use super::parse_id;

#[derive(Debug, Args)]
pub(super) struct CatArguments {
    /// The id of a mirrored repository
    #[arg(value_name = "ID", value_parser = parse_id)]
    id: String,
    /// The metadataPrefix [default: oai_dc, or the only one]
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<String>,
    /// Only records of this set
    #[arg(long, value_name = "SETSPEC")]
    set: Option<String>,
    /// Only records with this datestamp of the source or a later one
    #[arg(long, value_name = "DATE", value_parser = parse_from)]
    from: Option<UnixSecs>,
    /// Only records with this datestamp of the source or an earlier one
    #[arg(long, value_name = "DATE", value_parser = parse_until)]
    until: Option<UnixSecs>,
    /// The form of the output
    #[arg(long, value_enum, default_value_t = Form::Xml)]
    format: Form,
}

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// One XML document with all records
    Xml,
    /// One JSON object in each line
    Jsonl,
    /// One identifier in each line, without deleted records
    Ids,
}

impl CatArguments {
    fn to_target(&self) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        let format = self.format.to_possible_value();
        query.extend_pairs(format.iter().map(|format| ("format", format.get_name())));
        query.extend_pairs(self.prefix.iter().map(|prefix| ("prefix", prefix)));
        query.extend_pairs(self.set.iter().map(|set| ("set", set)));
        for (name, secs) in [("from", self.from), ("until", self.until)] {
            query.extend_pairs(secs.map(|secs| (name, from_secs(secs, Granularity::Second))));
        }
        format!("/-/mirror/{}/records?{}", self.id, query.finish())
    }
}

pub(super) fn run(api: &AdminApi, arguments: &CatArguments) -> Result<Exit, Failure> {
    let records =
        api.send("GET", &arguments.to_target())?.map_err(|Refusal { status, error }| match status {
            404 => Failure::incomplete(error),
            400 => Failure::usage(error),
            _ => Failure::in_use(error),
        })?;
    let mut output = io::stdout().lock();
    for piece in records.into_pieces() {
        match output.write_all(&piece?).and_then(|()| output.flush()) {
            // The reader stopped early.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
            Err(error) => return Err(Failure::io("write", Path::new("<stdout>"), &error)),
            Ok(()) => {}
        }
    }
    Ok(Exit::Success)
}

fn parse_from(text: &str) -> Result<UnixSecs, String> {
    to_secs(text).ok_or_else(|| NO_DATE.to_owned())
}

fn parse_until(text: &str) -> Result<UnixSecs, String> {
    to_last_second(text).ok_or_else(|| NO_DATE.to_owned())
}

const NO_DATE: &str = "expected a date such as 2024-01-31 or 2024-01-31T12:00:00Z";
