//! One attempt at a page: the body of one exchange, through the engine, to its verdict.

use crate::http::body::BodyError;
use crate::page::buffer::PageBuffer;
use crate::page::tag_cache_pool;
use crate::settings::{SourceMapping, StaticFile};
use bytes::Bytes;
use oaimend_files::{BROKEN_PAGE_BYTES_MAX, BrokenPageInfo};
use oaimend_oai::datestamp::to_secs;
use oaimend_oai::{Request, RequestEcho, UnixSecs};
use oaimend_repair::{Ending, NotOai, Origin, Outcome, Repairer, RepositoryFacts, Sink, Summary};
use oaimend_repository::{ByteRope, Failure, Reason, Secrets, printable};
use oaimend_rules::ResponseClocks;
use std::sync::Arc;

/// A page that passes through the engine.
pub(crate) struct Page<S = PageBuffer> {
    repairer: Option<Repairer>,
    pub(crate) buffer: S,
    /// The name of the source in failures.
    name: Arc<str>,
    pub(crate) status: u16,
    retry_after_secs: Option<u64>,
    requested_at: String,
    http_date_secs: Option<UnixSecs>,
    first: Vec<u8>,
    last: Vec<u8>,
    /// The body as received, while it is short enough to be kept.
    raw: Option<ByteRope>,
    /// The secrets of the mapping, which the source may echo.
    secrets: Secrets,
    /// Whether the body ended inside an item too long to be held.
    ended_inside_item: bool,
    /// Whether the engine had written the root's end tag when the body ended.
    ended_closed: bool,
}

/// The verdict on a page.
pub(crate) enum Verdict {
    /// Whole.
    Whole(Summary),
    /// Truncated: the output of the engine is sent, and the rest has to be requested again.
    Cut(Failure, Option<Summary>),
}

impl Verdict {
    /// The OAI-PMH version of the page.
    pub(crate) fn version(&self) -> Option<&'static str> {
        match self {
            Self::Whole(summary) => summary.version,
            Self::Cut(_, summary) => summary.as_ref()?.version,
        }
    }
}

/// The facts of a response when its body begins.
#[derive(Clone)]
pub(crate) struct ResponseStart {
    pub(crate) name: Arc<str>,
    pub(crate) status: u16,
    pub(crate) retry_after_secs: Option<u64>,
    pub(crate) charset: Option<String>,
    /// When the request was sent, `YYYY-MM-DDThh:mm:ssZ`.
    pub(crate) requested_at: String,
    /// The `Date` of the response, in seconds since 1970.
    pub(crate) http_date_secs: Option<UnixSecs>,
    /// The resumptionToken of the request, empty if it had none; `None` if the page is made of single records.
    pub(crate) request_token: Option<String>,
    /// The known facts of the repository.
    pub(crate) repository: RepositoryFacts,
}

/// The base URL in the provenance of records. Harvesters must not learn the path of a file on this machine:
/// a repository made of one has no other URL than ours.
fn origin_of(mapping: &SourceMapping, echo: &RequestEcho) -> String {
    match &mapping.static_file {
        Some(StaticFile { path: Some(_), .. }) => echo.base_url.clone(),
        _ if mapping.tape_file.is_some() => echo.base_url.clone(),
        _ => mapping.shown_base_url(),
    }
}

impl<S: Sink> Page<S> {
    pub(crate) fn new(
        mapping: &SourceMapping,
        echo: &Arc<RequestEcho>,
        start: ResponseStart,
        buffer: S,
    ) -> Self {
        let mut config = mapping.repair_config();
        config.request = Some(Arc::clone(echo));
        config.response_date = Some(start.requested_at.clone());
        config.charset = start.charset;
        config.request_token = start.request_token;
        config.repository = start.repository;
        config.ending = Ending::Abort;
        config.provenance = mapping
            .repairs
            .provenance
            .map(|scope| Origin::new(scope, origin_of(mapping, echo), start.requested_at.as_str()));
        Self {
            repairer: Some(Repairer::with_cache(&config, tag_cache_pool::take())),
            buffer,
            name: start.name,
            status: start.status,
            retry_after_secs: start.retry_after_secs,
            requested_at: start.requested_at,
            http_date_secs: start.http_date_secs,
            first: Vec::new(),
            last: Vec::new(),
            raw: Some(ByteRope::default()),
            secrets: mapping.secrets(),
            ended_inside_item: false,
            ended_closed: false,
        }
    }

    /// Feeds the engine with the next piece of the body.
    pub(crate) fn push(&mut self, piece: Bytes) {
        let wanted = FIRST_BYTES_KEPT.saturating_sub(self.first.len());
        self.first.extend_from_slice(piece.get(..wanted).unwrap_or(&piece));
        let last = piece.get(piece.len().saturating_sub(LAST_BYTES_KEPT)..).unwrap_or_default();
        self.last.drain(..(self.last.len() + last.len()).saturating_sub(LAST_BYTES_KEPT));
        self.last.extend_from_slice(last);
        match &mut self.raw {
            Some(raw) if raw.len() + piece.len() <= BROKEN_PAGE_BYTES_MAX => raw.push(piece.clone()),
            raw => *raw = None,
        }
        if let Some(repairer) = &mut self.repairer {
            repairer.push(&piece, &mut self.buffer);
        }
    }

    /// Whether the verdict is final, whatever the rest of the body is.
    pub(crate) fn is_decided(&self) -> bool {
        self.repairer.as_ref().is_some_and(|repairer| repairer.verdict().is_some())
    }

    /// Whether a part of an item was written that was too long to be held.
    pub(crate) fn is_inside_item(&self) -> bool {
        self.repairer.as_ref().map_or(self.ended_inside_item, Repairer::is_inside_item)
    }

    /// Whether the end tag of the document element was written.
    pub(crate) fn is_document_closed(&self) -> bool {
        self.repairer.as_ref().map_or(self.ended_closed, Repairer::is_document_closed)
    }

    /// Ends the engine and judges the page. `broken` is the error that ended the body early.
    pub(crate) fn finish(&mut self, broken: Option<BodyError>) -> Verdict {
        let decided = self.is_decided();
        let Some(repairer) = self.repairer.take() else {
            return Verdict::Cut(self.no_content_failure(NotOai::Empty), None);
        };
        self.ended_inside_item = repairer.is_inside_item();
        self.ended_closed = repairer.is_document_closed();
        let (summary, memory) = repairer.finish_with_cache(&mut self.buffer);
        tag_cache_pool::give_back(memory);
        let failure = match (summary.outcome, broken) {
            (Outcome::NotOai(_), Some(broken)) => self.with_status(broken.failure),
            // The end of the connection looked like the end of the body.
            (Outcome::NotOai(NotOai::NothingKept | NotOai::BrokenEnvelope), None)
                if !decided && summary.quarantined == 0 && !self.saw_end() =>
            {
                self.truncated()
            }
            (Outcome::NotOai(why), None) => self.no_content_failure(why),
            (Outcome::Truncated, None) => self.truncated(),
            // A wrong Content-Length or a missing gzip trailer after the end of the document has lost
            // nothing.
            (_, Some(broken))
                if broken.forgivable && self.saw_end() && summary.outcome != Outcome::Truncated =>
            {
                return Verdict::Whole(summary);
            }
            (_, Some(broken)) => self.with_status(broken.failure),
            (_, None) => return Verdict::Whole(summary),
        };
        Verdict::Cut(failure, Some(summary))
    }

    /// The body as received so far, if it was short enough to be kept.
    pub(crate) fn received(&self) -> Option<Bytes> {
        self.raw.as_ref().map(|raw| raw.to_vec().into())
    }

    /// The body as received, if it was short enough to be kept.
    pub(crate) fn take_raw(&mut self) -> Vec<u8> {
        self.raw.take().unwrap_or_default().to_vec()
    }

    /// The failure of a page with nothing to deliver.
    pub(crate) fn no_content_failure(&self, why: NotOai) -> Failure {
        let (name, status) = (&self.name, self.status);
        let began = match printable(&self.secrets.mask(&self.first), FIRST_CHARS_SHOWN) {
            text if text.is_empty() => text,
            text => format!("the response began: {text}"),
        };
        let failure = if status >= 400 {
            let details = format!("{name} answered with status {status} and no OAI-PMH body");
            Failure::new(Reason::Status, details)
        } else {
            Failure::new(Reason::NotOai(why), format!("{name}: {}", why.message()))
        };
        self.with_status(failure.with_evidence(began))
    }

    fn truncated(&self) -> Failure {
        self.with_status(Failure::new(
            Reason::Incomplete,
            format!("{} sent a page that ends early", self.name),
        ))
    }

    /// The failure of a subrequest beside the page has a status of its own.
    fn with_status(&self, failure: Failure) -> Failure {
        match failure.received_status {
            Some(_) => failure,
            None => failure.after_status(self.status, self.retry_after_secs),
        }
    }

    /// Whether the body ended with the end tag of the document element.
    pub(crate) fn saw_end(&self) -> bool {
        let last = self.last.trim_ascii_end();
        let tag = last.iter().rposition(|&byte| byte == b'<').and_then(|at| last.get(at..));
        let name = tag.and_then(|tag| tag.strip_prefix(b"</")).and_then(|tag| tag.strip_suffix(b">"));
        let local = name.and_then(|name| name.trim_ascii_end().rsplit(|&byte| byte == b':').next());
        local == Some(b"OAI-PMH".as_slice())
    }
}

impl Page {
    /// The `Date` of the response, in seconds since 1970.
    pub(crate) fn http_date_secs(&self) -> Option<UnixSecs> {
        self.http_date_secs
    }

    /// The clocks of the source in this response, and ours.
    pub(crate) fn clocks(&self) -> ResponseClocks {
        // A page that was made here has our own time as its responseDate.
        let is_of_source =
            self.http_date_secs.is_some() || self.buffer.head.response_date() != self.requested_at;
        ResponseClocks {
            response_date_secs: if is_of_source { to_secs(self.buffer.head.response_date()) } else { None },
            http_date_secs: self.http_date_secs,
            sent_at_secs: to_secs(&self.requested_at).unwrap_or_default(),
        }
    }

    /// The body as received, and the names of its defects; `None` if it has none or is too long, or if the defects are
    /// not wanted.
    pub(crate) fn evidence(
        &mut self,
        source_request: &Request,
        failure: Option<&Failure>,
        are_wanted: impl FnOnce(&[&'static str]) -> bool,
    ) -> Option<(ByteRope, BrokenPageInfo)> {
        let mut needed: Vec<&'static str> = self.buffer.defects.names().collect();
        needed.extend(failure.map(|failure| failure.reason.name()));
        let raw = self.raw.take().filter(|raw| !needed.is_empty() && !raw.is_empty())?;
        if !are_wanted(&needed) {
            return None;
        }
        let about = BrokenPageInfo {
            request: source_request.query().to_owned(),
            at: self.requested_at.clone(),
            status: self.status,
            needed,
        };
        Some((raw, about))
    }
}

/// First bytes of the body, kept for the text of a failure.
const FIRST_BYTES_KEPT: usize = 1024;
const FIRST_CHARS_SHOWN: usize = 160;
/// Last bytes of the body, kept to see whether the document was whole.
const LAST_BYTES_KEPT: usize = 256;
