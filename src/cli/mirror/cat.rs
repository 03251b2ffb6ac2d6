//! `oaimend mirror cat`: writes the records of a repository.

use std::io::{self, Write as _};
use std::path::Path;

use clap::{Args, ValueEnum};
use oaimend::oai::datestamp::{Granularity, from_secs, to_secs};
use oaimend::store::{ListFilter, ListOrder, ListQuery, RecordStatus, StoredRecord};
use serde_json::json;

use super::super::exit::{Exit, Failure};
use super::{Context, store_failure};

#[derive(Debug, Args)]
pub(super) struct CatArguments {
    /// The id of a mirrored repository
    #[arg(value_name = "ID")]
    id: String,
    /// The metadataPrefix [default: oai_dc, or the only one]
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<String>,
    /// Only records of this set
    #[arg(long, value_name = "SETSPEC")]
    set: Option<String>,
    /// Only records with this datestamp of the source or a later one
    #[arg(long, value_name = "DATE", value_parser = parse_from)]
    from: Option<i64>,
    /// Only records with this datestamp of the source or an earlier one
    #[arg(long, value_name = "DATE", value_parser = parse_until)]
    until: Option<i64>,
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

/// Records and bytes that are read from the store at a time.
const BATCH_RECORDS: usize = 1_000;
const BATCH_BYTES: usize = 4 << 20;

pub(super) fn run(context: &Context, arguments: CatArguments) -> Result<Exit, Failure> {
    let prefix = context.runtime.block_on(find_prefix(context, &arguments))?;
    let by = match arguments.from.or(arguments.until) {
        Some(_) => ListOrder::Datestamp,
        None => ListOrder::Stamp,
    };
    let filter = ListFilter {
        repository: arguments.id,
        prefix,
        set: arguments.set,
        by,
        from_secs: arguments.from,
        until_secs: arguments.until,
    };
    let mut output = io::BufWriter::new(io::stdout().lock());
    let written = write_all(context, &filter, arguments.format, &mut output)?;
    match written.and_then(|()| output.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::io("write", Path::new("<stdout>"), &error))
        }
        // A closed pipe is not an error: the reader stopped early.
        _ => Ok(Exit::Success),
    }
}

/// The format whose records are written.
async fn find_prefix(context: &Context, arguments: &CatArguments) -> Result<String, Failure> {
    let id = &arguments.id;
    let stored = context.store.mirror.collections(id).await.map_err(store_failure)?;
    let prefixes: Vec<String> = stored.into_iter().map(|size| size.prefix).collect();
    let never = |what: &str| {
        Failure::incomplete(format!("{what} was never harvested; run: oaimend mirror sync {id}"))
    };
    match (&arguments.prefix, prefixes.as_slice()) {
        (_, []) => Err(never(&format!("\"{id}\""))),
        (Some(prefix), known) if known.contains(prefix) => Ok(prefix.clone()),
        (Some(prefix), _) => Err(never(&format!("the format {prefix} of \"{id}\""))),
        (None, [only]) => Ok(only.clone()),
        (None, known) if known.iter().any(|prefix| prefix == "oai_dc") => Ok("oai_dc".to_owned()),
        (None, known) => Err(Failure::usage(format!("expected --prefix with one of {}", known.join(", ")))),
    }
}

/// Writes all records. The outer error is one of the store, the inner one is one of the output.
fn write_all(
    context: &Context,
    filter: &ListFilter,
    form: Form,
    output: &mut impl io::Write,
) -> Result<io::Result<()>, Failure> {
    if form == Form::Xml
        && let Err(error) = output.write_all(XML_START)
    {
        return Ok(Err(error));
    }
    let mut after = None;
    loop {
        let query = ListQuery {
            filter: filter.clone(),
            after,
            count_max: BATCH_RECORDS,
            bytes_max: BATCH_BYTES,
            with_bytes: form != Form::Ids,
        };
        let page = context.runtime.block_on(context.store.mirror.list(query)).map_err(store_failure)?;
        for record in &page.records {
            if let Err(error) = write_record(record, form, output) {
                return Ok(Err(error));
            }
        }
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    Ok(if form == Form::Xml { output.write_all(XML_END) } else { Ok(()) })
}

fn write_record(record: &StoredRecord, form: Form, output: &mut impl io::Write) -> io::Result<()> {
    match form {
        Form::Xml => {
            output.write_all(&record.bytes)?;
            output.write_all(b"\n")
        }
        Form::Ids if record.status == RecordStatus::Deleted => Ok(()),
        Form::Ids => writeln!(output, "{}", record.identifier),
        Form::Jsonl => {
            let line = json!({
                "identifier": record.identifier,
                "datestamp": from_secs(record.datestamp_secs, Granularity::Second),
                "deleted": record.status == RecordStatus::Deleted,
                "setSpecs": record.set_specs,
                "record": String::from_utf8_lossy(&record.bytes),
            });
            writeln!(output, "{line}")
        }
    }
}

const XML_START: &[u8] = b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<records \
    xmlns=\"http://www.openarchives.org/OAI/2.0/\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\">\n";
const XML_END: &[u8] = b"</records>\n";

fn parse_from(text: &str) -> Result<i64, String> {
    to_secs(text).ok_or_else(|| "expected a date such as 2024-01-31 or 2024-01-31T12:00:00Z".to_owned())
}

/// A day ends with its last second.
fn parse_until(text: &str) -> Result<i64, String> {
    let is_day = text.len() == Granularity::Day.len_bytes();
    Ok(parse_from(text)? + if is_day { 86_399 } else { 0 })
}
