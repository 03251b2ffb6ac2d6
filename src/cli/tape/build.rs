//! `oaimend tape build`: writes a tape and its index.

use oaimend_tape::{BuiltTape, open_scan};
use serde_json::json;

use super::arguments::BuildArguments;
use super::building::Selection;
use super::{catalog_json, describe, from_files, from_mirror, from_source};
use crate::cli::data_arguments::{create_files_as, create_private_files};
use crate::cli::exit::{Exit, Failure, print, print_message};
use crate::cli::output_format::{OutputFormat, format_json};
use crate::cli::state::IfAbsent;

pub(super) fn run(arguments: BuildArguments) -> Result<Exit, Failure> {
    let BuildArguments { out, files, from_mirror, from, set, prefix, accept_gaps, format, data } = arguments;
    let selection = Selection { prefixes: &prefix, set: set.as_deref(), accepts_gaps: accept_gaps };
    if out.is_dir() {
        return Err(Failure::usage(format_args!(
            "{} is a folder; expected the file of a tape",
            out.display()
        )));
    }
    if out.exists() && open_scan(&out).is_err() {
        // Without the name of the tape, the first saved response would be replaced by it.
        return Err(Failure::usage(format_args!(
            "{} exists and is no tape; name another file",
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
