//! A tape of a repository that is harvested for it.
//!
//! The harvest is that of the mirror, with all its repairs and retries, into a data folder beside the tape. The folder is
//! kept after a failure, so that the next run continues, and removed when the tape is complete.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use oaimend::config::{Config, Flags};
use oaimend_mirror::status::RepositoryStatus;
use oaimend_tape::BuiltTape;
use rustix::fs::Mode;

use super::building::Selection;
use super::from_mirror;
use crate::cli::admin_api::AdminApi;
use crate::cli::data_arguments::create_files_as;
use crate::cli::exit::Failure;
use crate::cli::mirror::harvest_one;
use crate::cli::state::{IfAbsent, State};

/// The id of the source in its data folder.
const ID: &str = "source";
/// Maximum number of harvests of one run.
const HARVESTS_MAX: u32 = 3;

/// Harvests a base URL, and writes the tape. The tape is created with this mask.
pub(super) fn build(
    out: &Path,
    url: &str,
    selection: &Selection<'_>,
    mask: Mode,
) -> Result<BuiltTape, Failure> {
    let mut folder = OsString::from(out);
    folder.push(".harvest");
    let folder = PathBuf::from(folder);
    let config = configure(&folder, url, selection)?;
    let state = State::find(&config, None, false, IfAbsent::Create)?;
    let api = AdminApi::open(config, state)?;
    let (line, status) = harvest_until_complete(&api)?;
    let kept = format!("{} holds what was received, and the same command continues there", folder.display());
    if status.last_harvest.is_none_or(|harvest| !harvest.errors.is_empty()) {
        return Err(Failure::incomplete(format!(
            "the harvest of {url} is not complete: {line}; no tape was written; {kept}"
        )));
    }
    create_files_as(mask);
    let built = from_mirror::build(out, &api, ID, selection)?;
    drop(api);
    fs::remove_dir_all(&folder).map_err(|error| Failure::io("remove", &folder, &error))?;
    Ok(built)
}

/// Harvests until no record is missing that may still be fetched. Returns the result of the last harvest, and the state.
fn harvest_until_complete(api: &AdminApi) -> Result<(String, RepositoryStatus), Failure> {
    let mut harvests = 0;
    loop {
        let (line, is_success) = harvest_one(api, ID)?;
        harvests += 1;
        let status = api.send("GET", &format!("/-/mirror/{ID}"))?;
        let status = status.map_err(|refusal| Failure::in_use(refusal.error))?.read::<RepositoryStatus>()?;
        // A record beyond repair counts as such when it comes with the same bytes again.
        let is_open = status.formats.iter().any(|format| format.missing > format.unrepairable);
        if is_success || !is_open || harvests == HARVESTS_MAX {
            return Ok((line, status));
        }
    }
}

/// Writes the configuration of the harvest, or reads that of a run before. An operator may have edited its mapping.
fn configure(folder: &Path, url: &str, selection: &Selection<'_>) -> Result<Config, Failure> {
    let mappings = folder.join("mappings");
    let (mapping, settings) = (mappings.join(format!("{ID}.toml")), folder.join("oaimend.toml"));
    let mut mirror = toml::Table::new();
    let texts = |texts: &[String]| toml::Value::Array(texts.iter().cloned().map(Into::into).collect());
    mirror.insert("prefixes".to_owned(), texts(selection.prefixes));
    mirror
        .insert("sets".to_owned(), texts(&selection.set.map(str::to_owned).into_iter().collect::<Vec<_>>()));
    let mut table = toml::Table::new();
    table.insert("base_url".to_owned(), url.into());
    table.insert("mirror".to_owned(), mirror.into());
    match fs::read_to_string(&mapping) {
        Ok(text) => {
            let known: toml::Table = text.parse().unwrap_or_default();
            let is_same = |key: &str| {
                known.get(key).and_then(toml::Value::as_str) == table.get(key).and_then(toml::Value::as_str)
            };
            let wants = |table: &toml::Table, key: &str| {
                table.get("mirror").and_then(|mirror| mirror.get(key)).cloned()
            };
            let is_same_part =
                ["prefixes", "sets"].iter().all(|key| wants(&known, key) == wants(&table, key));
            if !is_same("base_url") || !is_same_part {
                return Err(Failure::usage(format_args!(
                    "{} holds another harvest; remove it, or run the command that began it",
                    folder.display()
                )));
            }
        }
        Err(_) if folder.exists() => {
            return Err(Failure::usage(format_args!(
                "{} exists and holds no harvest of this command; move it away, or name another tape",
                folder.display()
            )));
        }
        Err(_) => {
            fs::create_dir_all(&mappings).map_err(|error| Failure::io("create", &mappings, &error))?;
            fs::write(&settings, "").map_err(|error| Failure::io("write", &settings, &error))?;
            fs::write(&mapping, table.to_string()).map_err(|error| Failure::io("write", &mapping, &error))?;
        }
    }
    let flags = Flags {
        config: Some(settings),
        mappings: Some(mappings),
        data: Some(folder.join("data")),
        ..Flags::default()
    };
    Ok(Config::load(&flags)?)
}
