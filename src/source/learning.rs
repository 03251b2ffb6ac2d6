//! What the answers of a source teach about how it is to be asked, and what becomes of a request then.
//!
//! The version is learned from any page, so it costs nothing. Only where a source of which
//! nothing is known refuses a request with a status of 400, as 1.x does, it is asked for `Identify`
//! once. That it refuses seconds is learned when the same request in days is answered.

use super::dialect::{Dialect, Put};
use super::failure::{Failure, Reason};
use super::fetch::Client;
use super::proof::Proof;
use super::session::{Conversation, Stop, error_code};
use super::skeleton::Skeleton;
use crate::clock;
use crate::oai::{ErrorCode, Verb, error_response};
use crate::repair::RepairId;
use crate::state::{Learned, State};
use std::sync::Arc;

/// What has come of a doubt about an answer.
pub(super) enum Weighed {
    /// The request is put in other words now.
    Again,
    /// It is this error.
    Error(Proof),
    /// It is what it was.
    Stays,
}

/// So often a request is put in other words.
const OTHER_WORDS_MAX: u32 = 3;
const SECONDS: &str = "YYYY-MM-DDThh:mm:ssZ";

impl Client {
    /// What was learned of the source with this mapping.
    pub(super) fn learned(&self, state: &State) -> Learned {
        state.repositories.learned(&self.mapping().id, &self.fingerprint)
    }

    /// Remembers what was learned of it.
    pub(super) async fn learn(
        &self,
        state: &State,
        lesson: impl FnOnce(&mut Learned) + Send + 'static,
    ) -> Learned {
        let (repositories, id) = (state.repositories.clone(), self.mapping().id.clone());
        let fingerprint = Arc::clone(&self.fingerprint);
        // What cannot be written is logged there.
        let learned = tokio::task::spawn_blocking(move || repositories.learn(&id, &fingerprint, lesson));
        learned.await.unwrap_or_default()
    }
}

impl Conversation<'_> {
    /// What is asked now, in the words of the source.
    pub(super) fn put(&self) -> Put {
        let chain = self.chain.as_ref().filter(|_| self.asked.is_resumption());
        let first = chain.and_then(|chain| chain.first());
        self.dialect.put(&self.asked, first.as_ref())
    }

    /// Why the request is refused without asking, if it is.
    pub(super) fn refusal(&self) -> Option<Proof> {
        let text = "the granularity of this repository is days: YYYY-MM-DD is right";
        self.dialect.is_too_fine(&self.asked).then(|| (ErrorCode::BadArgument, text.to_owned()))
    }

    /// An answer was of that version.
    pub(super) async fn note_version(&mut self, version: &'static str) {
        if self.dialect.is_news(version) {
            self.learn(|learned| learned.version = Some(version.to_owned())).await;
        }
    }

    async fn learn(&mut self, lesson: impl FnOnce(&mut Learned) + Send + 'static) {
        let job = self.job;
        let learned = job.client.learn(&job.state, lesson).await;
        self.dialect = Dialect::of(&job.mapping.quirks, &learned);
        tracing::info!(
            repo = job.mapping.id,
            version = learned.version,
            refuses_seconds = learned.refuses_seconds,
            "something was learned of a source"
        );
    }

    /// Whether the request is put in other words, by what the failure has taught or a question can.
    pub(super) async fn is_put_otherwise(&mut self, failure: &Failure) -> bool {
        if self.outlet.has_begun() || self.other_words >= OTHER_WORDS_MAX {
            return false;
        }
        if failure.reason == Reason::Status && failure.received_status == Some(400) {
            if self.dialect.is_unknown() {
                self.granularity().await;
            }
            self.may_take_days().await;
        }
        let is_other = self.put().query != self.put_as;
        self.other_words += u32::from(is_other);
        is_other
    }

    /// Whether it may be the seconds that were refused.
    fn may_be_too_fine(&self) -> bool {
        let is_asked_so = self.asked.is_in_seconds() && !self.dialect.in_days && !self.dialect.is_one();
        is_asked_so && !self.tries_days
    }

    /// Tries days, where a source refuses the seconds that it has announced itself.
    async fn may_take_days(&mut self) -> bool {
        if !self.may_be_too_fine() || self.granularity().await.as_deref() != Some(SECONDS) {
            return false;
        }
        (self.dialect.in_days, self.tries_days) = (true, true);
        true
    }

    /// A page was had. If that took days instead of seconds, it is so from now on.
    pub(super) async fn note_days(&mut self) {
        let is_learned =
            self.tries_days && error_code(&self.waiting.bytes()).as_deref() != Some("badArgument");
        if is_learned {
            self.tries_days = false;
            self.learn(|learned| learned.refuses_seconds = true).await;
        }
    }

    /// Whether the error that waits may be said better, or be none.
    pub(super) fn is_doubtful(&self) -> bool {
        if self.outlet.has_begun() || self.account.records > 0 {
            return false;
        }
        let made = |id: RepairId| self.account.counts.get(id as usize).is_some_and(|count| *count > 0);
        let is_empty = made(RepairId::EmptyList) || made(RepairId::VersionOneEmpty);
        is_empty && self.may_have_another_reason()
            || self.may_be_too_fine() && error_code(&self.waiting.bytes()).as_deref() == Some("badArgument")
    }

    /// What becomes of such an error.
    pub(super) async fn weigh(&mut self, error: &[u8]) -> Weighed {
        if error_code(error).as_deref() == Some("badArgument") {
            return if self.may_take_days().await { Weighed::Again } else { Weighed::Stays };
        }
        self.proof().await.map_or(Weighed::Stays, Weighed::Error)
    }

    /// Whether a list has come to its end of which nothing new lies within what was asked for.
    pub(super) fn is_nothing_left(&self) -> bool {
        let Some(sieve) = &self.sieve else { return false };
        let is_token_alone =
            !sieve.has_met() && self.account.records == 0 && error_code(&self.waiting.bytes()).is_none();
        sieve.left_all_out() || is_token_alone && self.job.request.verb() != Verb::ListSets
    }

    /// What is answered then: the end of the list, or that there is none.
    pub(super) fn nothing_left(&self) -> Vec<u8> {
        let (job, date) = (self.job, clock::utc_datetime(self.budget.now()));
        if let Some(skeleton) = self.skeleton() {
            return skeleton.close_with(Some(""));
        }
        if job.request.is_resumption() {
            let skeleton = Skeleton::of_ours(job.request.verb());
            return [skeleton.open(&date, &job.own.base_url).into_bytes(), skeleton.close_with(Some(""))]
                .concat();
        }
        let text = "no record lies within the window that was asked for";
        error_response(&job.own, &date, ErrorCode::NoRecordsMatch, text).into_bytes()
    }

    /// Answers with an error.
    pub(super) async fn refuse(&mut self, (code, why): Proof) -> Result<(), Stop> {
        let now = clock::utc_datetime(self.budget.now());
        let error = error_response(&self.job.own, &now, code, &why);
        self.outlet.send(error.into_bytes().into(), 200).await?;
        self.outlet.finish().await
    }
}
