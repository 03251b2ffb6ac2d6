//! The way of the text through the stages: which one reads next, and how much of the text is settled.
//!
//! Each stage looks at the text that is not settled yet and either settles some
//! of it, or needs more. What it decides never depends on where the pieces of
//! the input were cut. Text is kept only while a stage still needs it, and is
//! otherwise passed on as a slice of the input.

use crate::repair::catalog::NotOai;
use crate::repair::config::RepairConfig;
use crate::repair::sink::Sink;
use crate::repair::stages::head::errors::step_errors;
use crate::repair::stages::head::head_stage::step_head;
use crate::repair::stages::head::prolog::step_prolog;
use crate::repair::stages::list::emit::abandon_list;
use crate::repair::stages::list::list_stage::step_list;
use crate::repair::stages::list::oversized::step_oversized;
use crate::repair::stages::response::{Response, Stage, Step};
use crate::repair::stages::tail::{end_input, step_epilog, step_lost, step_tail};
use crate::repair::summary::{Outcome, Summary};
use crate::repair::validate::start_tag::Tags;

/// The engine for one response: it holds unsettled text and runs the stages over it.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) response: Response,
    /// Text that is not settled.
    unsettled: Vec<u8>,
    held_bytes_peak: usize,
}

/// How much of the input is added to unsettled text at a time.
const JOIN_BYTES: usize = 16 << 10;

impl Engine {
    pub(crate) fn new(config: &RepairConfig, tags: Tags) -> Self {
        Self { response: Response::new(config, tags), unsettled: Vec::new(), held_bytes_peak: 0 }
    }

    /// Takes the next piece of text.
    pub(crate) fn push(&mut self, mut text: &[u8], sink: &mut impl Sink) {
        while !text.is_empty() && !matches!(self.response.stage, Stage::Done) {
            if self.unsettled.is_empty() {
                let settled = self.advance(text, false, sink);
                self.unsettled.extend_from_slice(text.get(settled..).unwrap_or_default());
                break;
            }
            let before = self.unsettled.len();
            let (step, rest) = text.split_at(text.len().min(before.max(JOIN_BYTES)));
            let mut unsettled = std::mem::take(&mut self.unsettled);
            unsettled.extend_from_slice(step);
            let settled = self.advance(&unsettled, false, sink);
            match settled.checked_sub(before) {
                // The old text is settled: go on in the input itself.
                Some(into_step) => {
                    unsettled.clear();
                    text = text.get(into_step..).unwrap_or_default();
                }
                None => {
                    unsettled.drain(..settled);
                    text = rest;
                }
            }
            self.unsettled = unsettled;
        }
        self.held_bytes_peak =
            self.held_bytes_peak.max(self.unsettled.len() + self.response.output.held_bytes);
    }

    /// The end of the input.
    pub(crate) fn finish(mut self, decoded_as: &'static str, sink: &mut impl Sink) -> (Summary, Tags) {
        let unsettled = std::mem::take(&mut self.unsettled);
        let settled = self.advance(&unsettled, true, sink);
        debug_assert!(settled == unsettled.len(), "the end settles everything");
        end_input(&mut self.response, sink);
        let outcome = match self.response.not_oai {
            Some(reason) => Outcome::NotOai(reason),
            None if self.response.truncated || self.response.output.incomplete => Outcome::Truncated,
            None if self.response.output.changed => Outcome::Repaired,
            None => Outcome::Clean,
        };
        let summary = Summary {
            outcome,
            version: self.response.version,
            records: self.response.output.records,
            quarantined: self.response.output.quarantined,
            lost: self.response.output.lost,
            unread: self.response.output.unread,
            swallowed: self.response.output.swallowed,
            unresolved: self.response.output.unresolved,
            repairs: self.response.output.repairs,
            decoded_as,
            held_bytes_peak: self.held_bytes_peak,
        };
        (summary, self.response.tags)
    }

    /// The verdict, once no more input can change it.
    pub(crate) fn verdict(&self) -> Option<Outcome> {
        match (self.response.not_oai, &self.response.stage) {
            (Some(reason), _) => Some(Outcome::NotOai(reason)),
            (None, Stage::Lost) => Some(Outcome::Truncated),
            _ => None,
        }
    }

    /// Lets the stages read until they need more; returns how much is settled.
    fn advance(&mut self, text: &[u8], last: bool, sink: &mut impl Sink) -> usize {
        let mut settled = 0;
        loop {
            let rest = text.get(settled..).unwrap_or_default();
            if rest.is_empty() || !last && rest.len() < self.response.retry_at {
                return settled;
            }
            if self.response.lookahead.is_exhausted(self.response.base) {
                self.abandon_lookahead();
            }
            let step = match self.response.stage {
                Stage::Prolog => step_prolog(&mut self.response, rest, last, sink),
                Stage::Head => step_head(&mut self.response, rest, last, sink),
                Stage::Errors => step_errors(&mut self.response, rest, last, sink),
                Stage::List(_) => step_list(&mut self.response, rest, last, sink),
                Stage::Oversized(_) => step_oversized(&mut self.response, rest, last, sink),
                Stage::Tail => step_tail(&mut self.response, rest, last, sink),
                Stage::Epilog => step_epilog(&mut self.response, rest, last, sink),
                Stage::Lost => step_lost(&mut self.response, rest, last, sink),
                Stage::Done => Step::Settled(rest.len()),
            };
            match step {
                Step::NeedMore => return settled,
                Step::Settled(bytes) => {
                    self.response.retry_at = 0;
                    self.response.base += bytes as u64;
                    settled += bytes;
                }
            }
        }
    }

    /// The damage is made so that every byte of it needs all the others: what went out breaks off.
    fn abandon_lookahead(&mut self) {
        match std::mem::replace(&mut self.response.stage, Stage::Done) {
            // After the root's end nothing is written any more, nor is much held.
            stage @ (Stage::Lost | Stage::Done | Stage::Epilog) => self.response.stage = stage,
            Stage::List(list) | Stage::Oversized(list) => {
                self.response.output.lost += 1;
                abandon_list(&mut self.response, &list);
            }
            stage => {
                if matches!(stage, Stage::Tail) {
                    // The list is closed already.
                    self.response.verb = None;
                }
                self.response.refuse(NotOai::BrokenEnvelope);
            }
        }
    }
}
