//! The decoded body of one exchange, piece by piece.

use crate::http::deadline::{Deadline, TimedOut};
use crate::http::decoding::{Bounds, Coding, Decoder, Fault};
use crate::http::exchange::{Exchange, ReadError};
use crate::http::http_client::HttpClient;
use crate::settings::SourceMapping;
use bytes::Bytes;
use oaimend_repository::{Failure, Reason};

/// A body that is being read.
pub(crate) struct SourceBody<'a> {
    client: &'a HttpClient,
    mapping: &'a SourceMapping,
    exchange: Exchange,
    decoder: Decoder,
    /// Bytes without a content coding.
    plain: Bytes,
    /// The decoded bytes, if there is a coding.
    piece: Vec<u8>,
    ended: bool,
}

/// Why a body ended early.
#[derive(Clone)]
pub(crate) struct BodyError {
    pub(crate) failure: Failure,
    /// Whether the document may be complete nevertheless.
    pub(crate) forgivable: bool,
}

/// Bytes that are decoded and repaired at once: most pages are one piece.
const PIECE_BYTES: usize = 128 << 10;

impl<'a> SourceBody<'a> {
    pub(crate) fn new(client: &'a HttpClient, mapping: &'a SourceMapping, mut exchange: Exchange) -> Self {
        let limits = &mapping.limits;
        let bounds = Bounds {
            bytes_max: limits.response_bytes_max,
            ratio_max: limits.inflate_ratio_max,
            empty_bytes_max: limits.inflate_empty_bytes_max,
        };
        let decoder = Decoder::new(std::mem::take(&mut exchange.announced), bounds);
        Self { client, mapping, exchange, decoder, plain: Bytes::new(), piece: Vec::new(), ended: false }
    }

    /// The next piece; `None` is the end of the body.
    pub(crate) async fn next(&mut self, budget: &mut Deadline) -> Result<Option<Bytes>, BodyError> {
        let (since, spent) = (budget.now(), budget.spent());
        let mut reads = 0_u32;
        loop {
            if !self.plain.is_empty() {
                let count = self.plain.len().min(PIECE_BYTES);
                return Ok(Some(self.plain.split_to(count)));
            }
            if !self.piece.is_empty() {
                let count = self.decoder.pull(&mut self.piece).map_err(|fault| self.broken(fault))?;
                if count > 0 {
                    return Ok(self.piece.get(..count).map(Bytes::copy_from_slice));
                }
            }
            if self.ended {
                return Ok(None);
            }
            if self.exchange.has_ended() {
                // The client library detects this only with another poll.
                self.end();
                continue;
            }
            if reads > 0 {
                // Compressed bytes that are always ready, and contain nothing, are decoded without a wait.
                budget.count_since(since, spent);
                if budget.left().is_zero() {
                    return Err(self.timed_out());
                }
            }
            reads += 1;
            match budget.within(self.mapping.timeouts.read, self.exchange.read_chunk()).await {
                Ok(Ok(Some(chunk))) => {
                    if self.decoder.pass(&chunk).map_err(|fault| self.broken(fault))? {
                        self.plain = chunk;
                    } else {
                        self.piece.resize(PIECE_BYTES, 0);
                        self.decoder.push(&chunk);
                    }
                }
                Ok(Ok(None)) => self.end(),
                Ok(Err(error)) => {
                    let failure = match error {
                        ReadError::Http(error) => self.client.failure(&error, &self.exchange.url),
                        ReadError::File(failure) => failure,
                    };
                    return Err(BodyError { failure, forgivable: true });
                }
                Err(late) => {
                    let failure = self.client.timed_out(late, &self.exchange.url);
                    return Err(BodyError { failure, forgivable: late == TimedOut::Step });
                }
            }
        }
    }

    /// The content codings that the body really has, the outermost first.
    pub(crate) fn codings(&self) -> impl Iterator<Item = Coding> {
        self.decoder.codings()
    }

    /// The error if no time is left for the rest.
    pub(crate) fn timed_out(&self) -> BodyError {
        let failure = self.client.timed_out(TimedOut::Deadline, &self.exchange.url);
        BodyError { failure, forgivable: false }
    }

    /// Whether the last returned piece was the last one, as far as can be told without waiting.
    pub(crate) fn has_ended(&self) -> bool {
        self.plain.is_empty() && self.piece.is_empty() && self.exchange.has_ended()
    }

    fn end(&mut self) {
        self.ended = true;
        self.decoder.end();
    }

    fn broken(&self, fault: Fault) -> BodyError {
        let reason = match fault {
            Fault::Broken(_) => Reason::ContentCoding,
            Fault::EndedEarly(_) => Reason::Incomplete,
            Fault::TooLong(_) | Fault::TooDense(_) | Fault::TooEmpty(_) => Reason::TooLarge,
        };
        let failure = Failure::new(reason, format!("{}: {fault}", self.client.name()));
        BodyError { failure, forgivable: matches!(fault, Fault::EndedEarly(_)) }
    }
}
