//! What the answers of a source teach about how it is to be asked, and what becomes of a request then.
//!
//! The version is learned from the first page, so it costs nothing; what speaks against what is known, or would have a
//! request refused, is believed only of Identify. Where a source of which
//! nothing is known refuses a request with a status of 400, as 1.x does, it is asked for `Identify`
//! once. That it refuses the seconds it announces is learned where it refuses them also of days that it
//! answers as days; it is asked again once a day, and forgotten when it takes them or announces days.

use crate::clock;
use crate::oai::datestamp::Granularity;
use crate::oai::{ErrorCode, Verb, error_response};
use crate::repair::RepairId;
use crate::store::{SourceCapabilities, Store};
use crate::upstream::adapt::error_diagnosis::DiagnosedError;
use crate::upstream::adapt::item_filter::FilterRules;
use crate::upstream::adapt::request_adapter::{RequestAdapter, UpstreamQuery};
use crate::upstream::adapt::subrequest::SubrequestError;
use crate::upstream::client::source_client::SourceClient;
use crate::upstream::failure::{Failure, Reason};
use crate::upstream::session::list_session::{ListSession, Stop, error_code};
use crate::upstream::session::recovery::RestartPoint;
use crate::upstream::xml::envelope_tags::EnvelopeTags;

/// What has come of a doubt about an answer.
pub(crate) enum Diagnosis {
    /// The request is put in other words now.
    Again,
    /// It is this error.
    Error(DiagnosedError),
    /// It is what it was.
    Stays,
}

/// What a source makes of dates in seconds, where it was asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seconds {
    Taken,
    Refused,
    /// It gave no answer, or one that says nothing of dates.
    Unsaid,
}

/// How often a source that refuses seconds is asked whether it still does, in seconds.
const SECONDS_ASKED_EVERY_SECS: u64 = 24 * 3600;
/// So often a request is put in other words.
const OTHER_WORDS_MAX: u32 = 3;
const SECONDS: &str = "YYYY-MM-DDThh:mm:ssZ";

impl SourceClient {
    /// What was learned of the source with this mapping.
    pub(crate) fn learned(&self, store: &Store) -> SourceCapabilities {
        store.capabilities.detected(&self.mapping().id, &self.fingerprint)
    }

    /// Remembers what was learned of it.
    pub(crate) async fn learn(
        &self,
        store: &Store,
        lesson: impl FnOnce(&mut SourceCapabilities) + Send + 'static,
    ) -> SourceCapabilities {
        store.capabilities.update(&self.mapping().id, &self.fingerprint, lesson).await
    }
}

impl ListSession<'_> {
    /// What is asked now, in the words of the source.
    pub(crate) fn put(&self) -> UpstreamQuery {
        let chain = self.chain.as_ref().filter(|_| self.asked.is_resumption());
        let first = chain.and_then(|chain| chain.first());
        self.dialect.put(&self.asked, first.as_ref(), chain.and_then(|chain| chain.within.as_ref()))
    }

    /// Remembers that the source is asked for more than is wanted.
    pub(crate) fn note_window(&mut self, wanted: Option<&FilterRules>) {
        let window = wanted.and_then(|wanted| wanted.window.clone());
        self.account.within_a_window = self.asked.is_resumption() && window.is_some();
        // A list that was begun anew later in itself has a narrower one.
        if let Some(chain) = self.chain.as_mut().filter(|chain| chain.place.page == 0)
            && self.begun == RestartPoint::No
        {
            chain.within = window;
        }
    }

    /// Why the request is refused without asking, if it is.
    pub(crate) async fn refusal(&mut self) -> Option<DiagnosedError> {
        if self.dialect.is_too_fine(&self.asked) && self.job.mapping.quirks.version.is_none() {
            // Whoever asks in seconds alone would never see another page of it.
            self.granularity().await;
        }
        let text = "the granularity of this repository is days: YYYY-MM-DD is right";
        self.dialect.is_too_fine(&self.asked).then(|| (ErrorCode::BadArgument, text.to_owned()))
    }

    /// A page was of that version. Against what is known it speaks for itself alone, since one page may be of
    /// another program than the rest: Identify decides.
    pub(crate) async fn note_version(&mut self, version: &'static str) {
        if self.dialect.is_unknown() || self.asked.verb() == Verb::Identify {
            self.believe_version(version).await;
        } else if self.dialect.is_news(version) {
            self.granularity().await;
        }
    }

    /// The source speaks that version.
    pub(crate) async fn believe_version(&mut self, version: &'static str) {
        if self.dialect.is_news(version) {
            self.learn(|learned| learned.version = Some(version.to_owned())).await;
        }
    }

    async fn learn(&mut self, lesson: impl FnOnce(&mut SourceCapabilities) + Send + 'static) {
        let job = self.job;
        let learned = job.client.learn(&job.store, lesson).await;
        self.dialect = RequestAdapter::of(&job.mapping.quirks, &learned);
        // What is tried for this request alone is no lesson.
        self.dialect.in_days |= self.tries_days.is_some();
        tracing::info!(
            repo = job.mapping.id,
            version = learned.version,
            refuses_seconds = learned.refuses_seconds,
            "something was learned of a source"
        );
    }

    /// Whether the request is put in other words, by what the failure has taught or a question can.
    pub(crate) async fn is_put_otherwise(&mut self, failure: &Failure) -> bool {
        if self.outlet.has_begun() || self.other_words >= OTHER_WORDS_MAX {
            return false;
        }
        if is_400(failure) {
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
        self.asked.is_in_seconds() && !self.dialect.in_days && !self.dialect.is_one()
    }

    /// Tries days, where a source refuses the seconds that it has announced itself.
    async fn may_take_days(&mut self) -> bool {
        if !self.may_be_too_fine() || self.granularity().await.as_deref() != Some(SECONDS) {
            return false;
        }
        let seconds = self.seconds().await;
        if seconds == Seconds::Taken {
            return false;
        }
        // Where that is not said, days bring the answer all the same, for this once.
        (self.dialect.in_days, self.tries_days) = (true, Some(seconds == Seconds::Refused));
        true
    }

    /// What the source makes of seconds that can be refused for nothing but being seconds, if it answers
    /// the days of the request: midnights are no later than these, and in their order.
    async fn seconds(&mut self) -> Seconds {
        let (client, now) = (&self.job.client, self.budget.now());
        if client.sayings.takes_seconds(now) {
            return Seconds::Taken;
        }
        let mut manner = self.manner();
        manner.dialect.in_days = false;
        let seconds = match self.answered(&self.asked.at_midnight(), manner, 1).await {
            Ok(told) => match told.error().as_deref() {
                Some("badArgument") => Seconds::Refused,
                Some("noRecordsMatch") => Seconds::Taken,
                None if !told.items.is_empty() => Seconds::Taken,
                _ => Seconds::Unsaid,
            },
            Err(SubrequestError { failure, .. }) if is_400(&failure) => Seconds::Refused,
            Err(_) => Seconds::Unsaid,
        };
        if seconds == Seconds::Taken {
            client.sayings.note_seconds(now);
        }
        seconds
    }

    /// A page was had. If it was the seconds that were refused before, it is asked for days from now on.
    pub(crate) async fn note_days(&mut self) {
        let was_refused = self.tries_days == Some(true);
        if was_refused && error_code(&self.waiting.bytes()).as_deref() != Some("badArgument") {
            self.tries_days = None;
            let now = clock::secs(self.budget.now());
            let lesson = move |learned: &mut SourceCapabilities| {
                (learned.refuses_seconds, learned.seconds_asked_at) = (true, now);
            };
            self.learn(lesson).await;
        }
    }

    /// Asks a source that was seen to refuse seconds whether it still does, now and then.
    pub(crate) async fn doubt_days(&mut self) {
        let (job, now) = (self.job, clock::secs(self.budget.now()));
        if job.mapping.quirks.in_days || !self.dialect.in_days || !self.asked.is_in_seconds() {
            return;
        }
        if now < job.client.learned(&job.store).seconds_asked_at + SECONDS_ASKED_EVERY_SECS {
            return;
        }
        // Of those who come together one asks.
        self.learn(move |learned| learned.seconds_asked_at = now).await;
        if self.seconds().await == Seconds::Taken {
            self.learn(|learned| learned.refuses_seconds = false).await;
        }
    }

    /// Its Identify announces days: it is right to refuse seconds.
    pub(crate) async fn note_granularity(&mut self, granularity: Granularity) {
        let learned = self.job.client.learned(&self.job.store);
        if learned.refuses_seconds && granularity == Granularity::Day {
            self.learn(|learned| learned.refuses_seconds = false).await;
        }
    }

    /// Whether the error that waits may be said better, or be none.
    pub(crate) fn is_doubtful(&self) -> bool {
        if self.outlet.has_begun() || self.account.records > 0 {
            return false;
        }
        let made = |id: RepairId| self.account.counts.get(id as usize).is_some_and(|count| *count > 0);
        let is_empty = made(RepairId::EmptyList) || made(RepairId::V1Empty);
        is_empty && self.may_have_another_reason()
            || self.may_be_too_fine() && error_code(&self.waiting.bytes()).as_deref() == Some("badArgument")
    }

    /// What becomes of such an error.
    pub(crate) async fn weigh(&mut self, error: &[u8]) -> Diagnosis {
        if error_code(error).as_deref() == Some("badArgument") {
            return if self.may_take_days().await { Diagnosis::Again } else { Diagnosis::Stays };
        }
        self.proof().await.map_or(Diagnosis::Stays, Diagnosis::Error)
    }

    /// Whether a list has come to its end of which nothing new lies within what was asked for.
    pub(crate) fn is_nothing_left(&self) -> bool {
        let Some(sieve) = &self.sieve else { return false };
        let is_token_alone =
            !sieve.has_met() && self.account.records == 0 && error_code(&self.waiting.bytes()).is_none();
        sieve.left_all_out() || is_token_alone && self.job.request.verb() != Verb::ListSets
    }

    /// What is answered then: the end of the list, or that there is none.
    pub(crate) fn nothing_left(&self) -> Vec<u8> {
        let (job, date) = (self.job, clock::utc_datetime(self.budget.now()));
        if let Some(skeleton) = self.skeleton() {
            return skeleton.close_with(Some(""));
        }
        if job.request.is_resumption() {
            let skeleton = EnvelopeTags::of_ours(job.request.verb());
            return [skeleton.open(&date, &job.own.base_url).into_bytes(), skeleton.close_with(Some(""))]
                .concat();
        }
        let text = "no record lies within the window that was asked for";
        error_response(&job.own, &date, ErrorCode::NoRecordsMatch, text).into_bytes()
    }

    /// Answers with an error.
    pub(crate) async fn refuse(&mut self, (code, why): DiagnosedError) -> Result<(), Stop> {
        let now = clock::utc_datetime(self.budget.now());
        let error = error_response(&self.job.own, &now, code, &why);
        self.outlet.send(error.into_bytes().into(), 200).await?;
        self.outlet.finish().await
    }
}

fn is_400(failure: &Failure) -> bool {
    failure.reason == Reason::Status && failure.received_status == Some(400)
}
