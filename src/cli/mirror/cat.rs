//! `oaimend mirror cat`: writes the records of a repository.

use oaimend_oai::UnixSecs;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use oaimend_mirror::export::{Export, ExportError, ExportForm, ExportSelection};
use oaimend_oai::datestamp::{Granularity, from_secs, to_last_second, to_secs};

use super::super::admin_client::AdminClient;
use super::super::exit::{Exit, Failure};
use super::{Context, parse_id, store_failure};

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
    /// The query for the admin listener.
    fn to_query(&self) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        let format = self.format.to_possible_value();
        query.extend_pairs(format.iter().map(|format| ("format", format.get_name())));
        query.extend_pairs(self.prefix.iter().map(|prefix| ("prefix", prefix)));
        query.extend_pairs(self.set.iter().map(|set| ("set", set)));
        for (name, secs) in [("from", self.from), ("until", self.until)] {
            query.extend_pairs(secs.map(|secs| (name, from_secs(secs, Granularity::Second))));
        }
        query.finish()
    }
}

pub(super) fn run(context: &Context, arguments: CatArguments) -> Result<Exit, Failure> {
    let CatArguments { id, prefix, set, from, until, format } = arguments;
    let selection = ExportSelection { id, prefix, set, from_secs: from, until_secs: until };
    let form = match format {
        Form::Xml => ExportForm::Xml,
        Form::Jsonl => ExportForm::Jsonl,
        Form::Ids => ExportForm::Ids,
    };
    let export = Export::begin(Arc::clone(&context.store.mirror), selection, form);
    let mut export = context.runtime.block_on(export).map_err(|error| match error {
        ExportError::NeverHarvested { .. } | ExportError::UnknownMembers(_) => Failure::incomplete(error),
        ExportError::AmbiguousPrefix(_) => Failure::usage(error),
        ExportError::Store(error) => store_failure(error),
    })?;
    write_pieces(|| context.runtime.block_on(export.next_piece()).map_err(store_failure))
}

/// The same, through the admin listener.
pub(super) fn run_remote(client: &AdminClient, arguments: &CatArguments) -> Result<Exit, Failure> {
    let target = format!("/-/mirror/{}/records?{}", arguments.id, arguments.to_query());
    let mut response = client.open("GET", &target)?;
    match response.status {
        200 => write_pieces(|| response.next_piece()),
        404 => Err(Failure::incomplete(response.into_error()?)),
        400 => Err(Failure::usage(response.into_error()?)),
        _ => Err(Failure::in_use(response.into_error()?)),
    }
}

/// Writes pieces to stdout, up to the end. A closed pipe is not an error: the reader stopped early.
fn write_pieces(mut next_piece: impl FnMut() -> Result<Option<Vec<u8>>, Failure>) -> Result<Exit, Failure> {
    let mut output = io::stdout().lock();
    while let Some(piece) = next_piece()? {
        match output.write_all(&piece).and_then(|()| output.flush()) {
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
