//! The engine: it runs one stage after the other over the unsettled text.
//!
//! [`Repairer`](crate::Repairer) owns one engine for each response.
//!
//! A stage either settles the beginning of the text or needs more text. Its decisions never depend on the
//! chunks of the input. Text is copied only while a stage still needs it. Otherwise it is passed on as a
//! slice of the input.

use crate::catalog::NotOai;
use crate::config::RepairConfig;
use crate::lex::window::TextWindow;
use crate::sink::Sink;
use crate::stages::head::errors::step_errors;
use crate::stages::head::head_stage::step_head;
use crate::stages::head::prolog::step_prolog;
use crate::stages::list::emit::abandon_list;
use crate::stages::list::list_stage::step_list;
use crate::stages::list::oversized::step_oversized;
use crate::stages::response::{Response, Stage, StepResult};
use crate::stages::step::Step;
use crate::stages::tail::{end_input, step_epilog, step_tail, step_truncated};
use crate::summary::{Outcome, Summary};
use crate::validate::start_tag::StartTagCache;

/// The engine for one response: it holds the unsettled text and runs the stages over it.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) response: Response,
    /// Text that is not settled yet.
    unsettled: Vec<u8>,
    held_bytes_peak: usize,
}

/// The largest number of input bytes appended to the unsettled text at a time, if that text is shorter.
const JOIN_BYTES: usize = 16 << 10;

impl Engine {
    pub(crate) fn new(config: &RepairConfig, tags: StartTagCache) -> Self {
        Self { response: Response::new(config, tags), unsettled: Vec::new(), held_bytes_peak: 0 }
    }

    /// Takes the next chunk of text.
    pub(crate) fn push(&mut self, mut text: &[u8], sink: &mut impl Sink) {
        while !text.is_empty() && !matches!(self.response.stage(), Stage::Done) {
            if self.unsettled.is_empty() {
                let settled = self.advance(TextWindow::so_far(text), sink);
                self.unsettled.extend_from_slice(text.get(settled..).unwrap_or_default());
                break;
            }
            let before = self.unsettled.len();
            let (step, rest) = text.split_at(text.len().min(before.max(JOIN_BYTES)));
            let mut unsettled = std::mem::take(&mut self.unsettled);
            unsettled.extend_from_slice(step);
            let settled = self.advance(TextWindow::so_far(&unsettled), sink);
            match settled.checked_sub(before) {
                // All held text is settled: continue in the input itself.
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
            self.held_bytes_peak.max(self.unsettled.len() + self.response.output.held_bytes());
    }

    /// Ends the input and returns the summary.
    pub(crate) fn finish(
        mut self,
        decoded_as: &'static str,
        sink: &mut impl Sink,
    ) -> (Summary, StartTagCache) {
        let unsettled = std::mem::take(&mut self.unsettled);
        let settled = self.advance(TextWindow::whole(&unsettled), sink);
        debug_assert!(settled == unsettled.len(), "the end settles everything");
        end_input(&mut Step { response: &mut self.response, window: TextWindow::whole(b""), sink });
        let counted = self.response.output.summary();
        let is_truncated = self.response.end.is_truncated() || self.response.output.is_incomplete();
        let outcome = match self.response.end.refusal() {
            Some(reason) => Outcome::NotOai(reason),
            None if is_truncated => Outcome::Truncated,
            None => counted.outcome,
        };
        let (version, held_bytes_peak) = (self.response.root.version(), self.held_bytes_peak);
        let summary = Summary { outcome, version, decoded_as, held_bytes_peak, ..counted };
        (summary, self.response.into_tags())
    }

    /// Returns the outcome once no more input can change it.
    pub(crate) fn verdict(&self) -> Option<Outcome> {
        match (self.response.end.refusal(), self.response.stage()) {
            (Some(reason), _) => Some(Outcome::NotOai(reason)),
            (None, Stage::Truncated) => Some(Outcome::Truncated),
            _ => None,
        }
    }

    /// Runs the stages until they need more text. Returns the number of settled bytes.
    fn advance(&mut self, window: TextWindow<'_>, sink: &mut impl Sink) -> usize {
        let mut settled = 0;
        loop {
            let rest = window.text.get(settled..).unwrap_or_default();
            if rest.is_empty() || !window.is_last && self.response.position.needs_more_than(rest.len()) {
                return settled;
            }
            if self.response.is_lookahead_exhausted() {
                self.abandon_lookahead();
            }
            let window = TextWindow { text: rest, ..window };
            let step = &mut Step { response: &mut self.response, window, sink };
            let result = match step.response.stage() {
                Stage::Prolog => step_prolog(step),
                Stage::Head => step_head(step),
                Stage::Errors => step_errors(step),
                Stage::List(_) => step_list(step),
                Stage::Oversized(_) => step_oversized(step),
                Stage::Tail => step_tail(step),
                Stage::Epilog => step_epilog(step),
                Stage::Truncated => step_truncated(step),
                Stage::Done => StepResult::Settled(rest.len()),
            };
            match result {
                StepResult::NeedMore => return settled,
                StepResult::Settled(bytes) => {
                    self.response.position.settle(bytes);
                    settled += bytes;
                }
            }
        }
    }

    /// Gives up a response whose damage makes every lookahead fail. Output that has begun stays truncated.
    fn abandon_lookahead(&mut self) {
        match self.response.take_stage() {
            // After the root's end nothing more is written, and little is held.
            stage @ (Stage::Truncated | Stage::Done | Stage::Epilog) => self.response.enter(stage),
            Stage::List(list) | Stage::Oversized(list) => {
                self.response.output.count_lost();
                abandon_list(&mut self.response, &list);
            }
            stage => {
                if matches!(stage, Stage::Tail) {
                    // The list is closed already.
                    self.response.end.forget_list();
                }
                self.response.refuse(NotOai::BrokenEnvelope);
            }
        }
    }
}
