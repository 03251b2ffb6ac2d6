//! Responds with a dump, a part of it, or its manifest.

use super::build::{RequestedDump, current_dump, find};
use super::refusal::Refusal;
use super::source::{DumpSource, store_state};
use super::stale::remove_stale;
use crate::serve::clients::client_class::ClientNetwork;
use crate::serve::problem::problem;
use crate::serve::response::Response;
use crate::serve::served::ServedRepositories;
use crate::serve::validators::Validators;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use http::{HeaderMap, header};
use oaimend_dumps::{ByteRange, DumpQuery, KeptDump, Manifest};
use oaimend_store::MirrorError;
use serde_json::{Value, json};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long a request waits for a dump that is being written. Proxies and clients end longer silences.
const WAIT_MAX: Duration = Duration::from_secs(20);
/// Bytes of a dump that are read at a time.
const PIECE_BYTES: u64 = 256 << 10;

/// A request for a dump.
pub(crate) struct DumpRequest {
    /// The query of its URL.
    pub(crate) query: String,
    /// Whether the manifest is requested in place of the dump.
    pub(crate) is_manifest: bool,
    pub(crate) label: Option<&'static str>,
}

/// The response to a client.
pub(crate) async fn answer_dump(
    served: &Arc<ServedRepositories>,
    request: &DumpRequest,
    client: Option<ClientNetwork>,
    headers: &HeaderMap,
) -> Response {
    let kept = match dump_of(served, &request.query, client).await {
        Ok(kept) => kept,
        Err(refusal) => return refusal.response(),
    };
    let validators = Validators { tag: kept.manifest.etag(), modified_secs: None };
    if request.is_manifest {
        let page = Response::json(200, &manifest_json(&served.public_url, &kept.manifest));
        return page.with("Cache-Control", "no-cache".to_owned());
    }
    if validators.are_known(headers) {
        let page = Response { status: 304, ..Response::no_content() };
        return with_metadata(page, &served.public_url, &kept.manifest);
    }
    let bytes = kept.manifest.bytes;
    let page = match wanted_range(headers, &validators.entity_tag(), bytes) {
        ByteRange::Unsatisfiable => {
            let page = problem(416, "the range has no byte of the dump; request it without `Range`");
            return page.with("Content-Range", format!("bytes */{bytes}"));
        }
        ByteRange::Whole => file_response(kept.file, &kept.manifest, 0..bytes),
        ByteRange::Part(range) => {
            let shown = format!("bytes {}-{}/{bytes}", range.start, range.end - 1);
            let page = file_response(kept.file, &kept.manifest, range);
            Response { status: 206, ..page }.with("Content-Range", shown)
        }
    };
    with_metadata(page, &served.public_url, &kept.manifest)
}

/// The response to an operator: 202 while the dump is being written.
pub(crate) async fn answer_operator(
    served: &Arc<ServedRepositories>,
    query: Option<&str>,
    is_manifest: bool,
) -> Response {
    match dump_of(served, query.unwrap_or_default(), None).await {
        Ok(kept) if is_manifest => Response::json(200, &manifest_json(&served.public_url, &kept.manifest)),
        Ok(kept) => {
            let bytes = kept.manifest.bytes;
            file_response(kept.file, &kept.manifest, 0..bytes)
        }
        Err(Refusal::Building(records)) => Response::json(202, &json!({ "building": records })),
        Err(refusal) => {
            let (status, error, _) = refusal.parts();
            Response::json(status, &json!({ "error": error }))
        }
    }
}

async fn dump_of(
    served: &Arc<ServedRepositories>,
    query: &str,
    client: Option<ClientNetwork>,
) -> Result<KeptDump, Refusal> {
    let query = DumpQuery::read(query).map_err(|fault| Refusal::Illegal(fault.to_string()))?;
    // A repository that is not served any more has no dumps either.
    let source = DumpSource::find(served, &query.selection.repository)?;
    let state = store_state(served).await?;
    remove_stale(served, &state).await?;
    let Some(position) = query.position else {
        let requested = RequestedDump { source, selection: &query.selection, client };
        return current_dump(served, requested, &state, WAIT_MAX).await;
    };
    // Records that were removed from the store are in no dump any more, also not in one that could not be removed yet.
    let collection = source.collection(served, &query.selection.prefix).await?;
    position.check(&state, collection).map_err(|_| Refusal::NotKept)?;
    find(served, &query.selection, Some(position)).await?.ok_or(Refusal::NotKept)
}

/// The range of a request, if it is one of this dump.
fn wanted_range(headers: &HeaderMap, entity_tag: &str, bytes: u64) -> ByteRange {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default().trim());
    match (text(header::RANGE), text(header::IF_RANGE)) {
        // Another dump, a weak tag or a date: the parts of two dumps are never joined.
        (_, Some(tag)) if tag != entity_tag => ByteRange::Whole,
        (Some(range), _) => ByteRange::read(range, bytes),
        (None, _) => ByteRange::Whole,
    }
}

fn file_response(file: File, manifest: &Manifest, range: Range<u64>) -> Response {
    let length = range.end - range.start;
    Response::download(manifest.selection.form().content_type(), pieces_of(file, range))
        .with("Content-Length", length.to_string())
}

/// The pieces of a file. One is in memory at a time.
fn pieces_of(file: File, range: Range<u64>) -> BoxStream<'static, Result<Bytes, MirrorError>> {
    let pieces = stream::try_unfold((Arc::new(file), range), async |(file, range)| {
        if range.is_empty() {
            return Ok(None);
        }
        let (reading, at) = (Arc::clone(&file), range.start);
        let length = usize::try_from((range.end - at).min(PIECE_BYTES)).unwrap_or(usize::MAX);
        let read = tokio::task::spawn_blocking(move || {
            let mut piece = vec![0; length];
            reading.read_exact_at(&mut piece, at).map(|()| Bytes::from(piece))
        });
        let read = read.await.map_err(|error| MirrorError::Stopped(error.to_string()))?;
        let piece = read.map_err(|error| MirrorError::io(Path::new("dumps"), error))?;
        Ok(Some((piece, (file, at + length as u64..range.end))))
    });
    pieces.boxed()
}

/// The headers that every response with a dump has.
fn with_metadata(page: Response, public_url: &str, manifest: &Manifest) -> Response {
    let selection = &manifest.selection;
    let name: String = selection.repository.chars().map(|c| if c == '/' { '-' } else { c }).collect();
    let file_name = format!("{name}-{}.{}", selection.prefix, selection.form().extension());
    let digest = hex::decode(&manifest.sha256).unwrap_or_default();
    let page = page
        .with("ETag", format!("\"{}\"", manifest.etag()))
        .with("Accept-Ranges", "bytes".to_owned())
        .with("Cache-Control", "no-cache".to_owned())
        .with("Content-Location", url_of(public_url, manifest))
        .with(
            "Link",
            format!(
                "<{}>; rel=\"describedby\"; type=\"application/json\"",
                manifest_url(public_url, manifest)
            ),
        )
        .with("Repr-Digest", format!("sha-256=:{}:", STANDARD.encode(digest)))
        .with("Oaimend-Position", manifest.position.clone());
    let page = if file_name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\') {
        page.with("Content-Disposition", format!("attachment; filename=\"{file_name}\""))
    } else {
        page.with("Content-Disposition", "attachment".to_owned())
    };
    if manifest.gaps.is_empty() { page } else { page.with("Oaimend-Gaps", manifest.gaps.len().to_string()) }
}

fn manifest_json(public_url: &str, manifest: &Manifest) -> Value {
    let mut value = json!(manifest);
    value["etag"] = json!(format!("\"{}\"", manifest.etag()));
    value["url"] = json!(url_of(public_url, manifest));
    value
}

fn url_of(public_url: &str, manifest: &Manifest) -> String {
    format!("{public_url}/_dump?{}", manifest.selection.to_query(Some(&manifest.position)))
}

fn manifest_url(public_url: &str, manifest: &Manifest) -> String {
    format!("{public_url}/_dump/manifest?{}", manifest.selection.to_query(Some(&manifest.position)))
}
