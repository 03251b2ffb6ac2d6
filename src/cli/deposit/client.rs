//! Sends records to a local repository, in lists that are stored whole or not at all.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use http::{HeaderMap, HeaderValue, Response, header};
use oaimend_base::clock::{Clock as _, SystemClock};
use oaimend_base::error::Error;
use oaimend_deposit::{FileRecord, write_list};
use oaimend_upstream::Endpoint;
use oaimend_write_tokens::read_token_file;
use serde::Deserialize;
use serde_json::Value;
use tokio::runtime::Runtime;
use url::Url;

use super::super::exit::Failure;
use super::super::progress::ProgressLine;

/// Maximum number of records of a list.
const LIST_RECORDS_MAX: usize = 1_000;
/// Length of the metadata after which a list ends, in bytes. A slow line sends it within the time for a body.
const LIST_BYTES: usize = 1 << 20;
/// Attempts for a list, and the wait before the second one.
const ATTEMPTS_MAX: u32 = 4;
const WAIT: Duration = Duration::from_secs(2);
/// Longest wait before an attempt.
const WAIT_MAX: Duration = Duration::from_secs(120);
/// The variable of the environment with a token.
const TOKEN_VARIABLE: &str = "OAIMEND_TOKEN";

/// The access to a repository.
#[derive(Debug, Args)]
pub(crate) struct AccessArguments {
    /// File with the write token, for nobody else to read [default: the environment variable OAIMEND_TOKEN]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// PEM file with certificates that may sign that of the server, in addition to the usual ones
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
}

/// A local repository with the token for it.
pub(super) struct DepositClient {
    base_url: String,
    authorization: HeaderValue,
    ca_file: Option<PathBuf>,
    runtime: Runtime,
}

/// What was written.
#[derive(Debug, Default)]
pub(super) struct Sent {
    /// The records that were sent.
    pub(super) records: u64,
    /// Those that are new or changed.
    pub(super) changed: u64,
    /// The datestamp of the last list.
    pub(super) datestamp: String,
}

/// The response to a list.
#[derive(Deserialize)]
struct StoredList {
    changed: u64,
    datestamp: String,
}

impl DepositClient {
    /// A client of the repository with this base URL.
    ///
    /// # Errors
    ///
    /// There is no token, or its file can be read by others.
    pub(super) fn new(base_url: &str, access: AccessArguments) -> Result<Self, Failure> {
        let token = match &access.token_file {
            Some(file) => read_token_file(file).map_err(Error::from)?,
            None => std::env::var(TOKEN_VARIABLE).map_err(|_| {
                let text = "there is no token; name its file with --token-file, or set OAIMEND_TOKEN. `oaimend token \
                            create` makes one on the machine of the repository";
                Failure::usage(text)
            })?,
        };
        let mut authorization = HeaderValue::from_str(&format!("Bearer {}", token.trim()))
            .map_err(|_| Failure::usage("the token has characters that no token has; copy it again"))?;
        authorization.set_sensitive(true);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::io("start", Path::new("the network"), &error))?;
        let base_url = base_url.trim_end_matches('/').to_owned();
        Ok(Self { base_url, authorization, ca_file: access.ca_file, runtime })
    }

    /// Sends records: those in `oai_dc` first, because the others may need them.
    ///
    /// # Errors
    ///
    /// The repository refuses a record, or cannot be reached. The lists before it are stored.
    pub(super) fn send(&self, records: &[FileRecord], sent: &mut Sent) -> Result<(), Failure> {
        let mut prefixes: Vec<&str> = records.iter().map(|record| record.prefix.as_str()).collect();
        prefixes.sort_by_key(|prefix| (*prefix != "oai_dc", *prefix));
        prefixes.dedup();
        let progress = ProgressLine::default();
        for prefix in prefixes {
            let chosen: Vec<&FileRecord> = records.iter().filter(|record| record.prefix == prefix).collect();
            let (mut rest, total) = (chosen.as_slice(), chosen.len() as u64);
            while !rest.is_empty() {
                let (list, others) = rest.split_at(list_length(rest));
                progress.show(&self.base_url, prefix, total - rest.len() as u64, Some(total));
                let stored = self.send_list(prefix, list).inspect_err(|_| progress.end(&self.base_url))?;
                sent.records += list.len() as u64;
                sent.changed += stored.changed;
                sent.datestamp = stored.datestamp;
                rest = others;
            }
            progress.end(&self.base_url);
        }
        Ok(())
    }

    fn send_list(&self, prefix: &str, list: &[&FileRecord]) -> Result<StoredList, Failure> {
        let encoded: String = url::form_urlencoded::byte_serialize(prefix.as_bytes()).collect();
        let address = format!("{}/records?metadataPrefix={encoded}", self.base_url);
        let unusable =
            |problem: String| Failure::incomplete(format!("cannot use {}: {problem}", self.base_url));
        let url = Url::parse(&address).map_err(|error| unusable(error.to_string()))?;
        let endpoint = Endpoint::new(&url, self.ca_file.as_deref()).map_err(unusable)?;
        let body = write_list(list.iter().map(|record| &record.deposit));
        let headers = HeaderMap::from_iter([
            (header::AUTHORIZATION, self.authorization.clone()),
            (header::CONTENT_TYPE, HeaderValue::from_static("text/xml")),
        ]);
        let mut wait = WAIT;
        for attempt in 1.. {
            let sending = endpoint.post_long(headers.clone(), body.clone(), &SystemClock);
            let problem = match self.runtime.block_on(sending) {
                Ok(response) if response.status().is_success() => {
                    let stored = serde_json::from_slice(response.body());
                    return stored
                        .map_err(|_| unusable("its response is not that of a local repository".to_owned()));
                }
                Ok(response) if response.status() != 503 => return Err(unusable(refusal(&response))),
                Ok(response) => {
                    wait = retry_after(&response).unwrap_or(wait);
                    refusal(&response)
                }
                Err(problem) => problem,
            };
            if attempt == ATTEMPTS_MAX {
                return Err(unusable(problem));
            }
            self.runtime.block_on(SystemClock.pause(wait.min(WAIT_MAX)));
            wait *= 2;
        }
        unreachable!("the last attempt returns")
    }
}

/// The number of records of the next list.
fn list_length(records: &[&FileRecord]) -> usize {
    let mut bytes = 0;
    let fits = |record: &&&FileRecord| {
        bytes += record.deposit.payload_bytes();
        bytes <= LIST_BYTES
    };
    records.iter().take(LIST_RECORDS_MAX).take_while(fits).count().max(1)
}

/// Why a repository refuses a list.
fn refusal(response: &Response<Vec<u8>>) -> String {
    let problem: Value = serde_json::from_slice(response.body()).unwrap_or_default();
    let detail = problem["detail"].as_str().unwrap_or("it is not a local repository of oaimend");
    format!("status {}: {detail}", response.status().as_u16())
}

fn retry_after(response: &Response<Vec<u8>>) -> Option<Duration> {
    let secs = response.headers().get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(secs))
}
