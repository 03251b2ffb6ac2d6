//! Decides what follows an attempt at a page.
//!
//! Pure: the end of the attempt, the facts, the remaining time and a random number are arguments. The session carries
//! the decision out.
//!
//! Whether a remedy has an effect shows only when it is tried: a list may have no point from which it can begin again.
//! Then the session asks again for a decision, with the remedy among those that were tried.
//!
//! Invariants: each remedy is tried once after an attempt; nothing follows a part of a response that cannot be
//! continued; after single records, only the end of the response follows.

use crate::http::retry::{may_depend_on_request, next_wait};
use crate::session::outcome::{AttemptEnd, Meaning};
use oaimend_oai::{ErrorCode, Request};
use oaimend_repository::{Failure, Reason};
use std::time::Duration;

/// What follows an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next<'e> {
    /// The response is complete, and is ended.
    Finish,
    /// Nothing: the response was ended.
    Nothing,
    /// The page has nothing new, and the list continues with the page of this token.
    SkipPage(&'e str),
    /// The list is begun again. If there is no point for that, the error means what it says.
    Restart,
    /// It is found out what the error means.
    Diagnose(Option<ErrorCode>),
    /// This is tried against the failure. If it has no effect, a further decision follows.
    Try(Remedy, &'e Failure),
    /// The request is repeated after this time.
    RetryAfter(Duration, &'e Failure),
    /// The error response of the source is sent as it is.
    SendError(Option<ErrorCode>, &'e [u8]),
    /// The request fails, because its list does not lead on.
    FailWithoutItems,
    /// The request fails.
    Fail(&'e Failure),
}

/// What can be done about an attempt that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remedy {
    /// Sends the request by the other HTTP method.
    OtherMethod,
    /// Begins the list again, because its page has changed.
    RestartChanged,
    /// Learns from the failure another form of the request.
    OtherForm,
    /// Begins the list again, because the source may have forgotten its token.
    RestartExpired,
    /// Sends the token with the metadataPrefix of its list.
    PrefixWithToken,
    /// Makes the page of its records.
    SingleRecords,
    /// Sends the error that the failure is proven to mean.
    ProvenError,
    /// Closes the list with a token of ours for the rest.
    OwnToken,
}

/// How much of the response was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    Nothing,
    /// A part of a list, which further items may follow.
    OpenList,
    /// A part that nothing may follow.
    Final,
}

/// The attempts of a session so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AttemptCounts {
    /// Attempts since the last progress.
    pub(super) attempts: u32,
    /// Attempts that were not proven to be the same page, since the request was last changed because of a failure.
    pub(super) unproven: u32,
    /// Pages without a new item.
    pub(super) pages_skipped: u32,
    /// How often the request was sent in another form.
    pub(super) rewordings: u32,
}

/// The facts after an attempt, on which the decision depends.
#[derive(Clone, Copy)]
pub(super) struct Facts<'a> {
    /// The request to the source.
    pub(super) source_request: &'a Request,
    pub(super) sent: Sent,
    pub(super) counts: AttemptCounts,
    /// Whether the request belongs to a list.
    pub(super) has_position: bool,
    /// Whether the list was restarted, now or by an earlier request.
    pub(super) is_restarted: bool,
    /// Whether the source refuses the HTTP method, and the other one may be tried.
    pub(super) has_other_method: bool,
    /// Whether the mapping allows to fetch single records, and the list does not consist of them already.
    pub(super) may_fetch_records: bool,
    /// The remaining time.
    pub(super) left: Duration,
    /// A random number from 0 to 1.
    pub(super) random: f64,
    /// The remedies that were tried after this attempt and had no effect.
    pub(super) tried: &'a [Remedy],
}

/// How often a page is requested again that is not proven to be the same.
const UNPROVEN_MAX: u32 = 2;
/// Consecutive pages without a new item that are skipped within one request.
const PAGES_SKIPPED_MAX: u32 = 1_000;
/// How often a request is reworded.
const REWORDINGS_MAX: u32 = 3;

/// Decides what follows an attempt.
pub(super) fn decide<'e>(end: &'e AttemptEnd, facts: &Facts<'_>) -> Next<'e> {
    match end {
        AttemptEnd::Whole => Next::Finish,
        AttemptEnd::Refused => Next::Nothing,
        AttemptEnd::NextPage(token) => after_skipped_page(token, facts),
        AttemptEnd::Error { meaning: Meaning::ExpiredToken, .. } if facts.can_restart() => Next::Restart,
        AttemptEnd::Error { meaning: Meaning::Doubtful, code, .. } => Next::Diagnose(*code),
        AttemptEnd::Error { code, response, .. } => Next::SendError(*code, response),
        AttemptEnd::Failed { failure, lost } => after_failure(failure, *lost, facts),
    }
}

fn after_skipped_page<'e>(token: &'e str, facts: &Facts<'_>) -> Next<'e> {
    // Time bounds a walk through delivered items, and the next request continues it.
    let are_too_many = facts.counts.pages_skipped >= PAGES_SKIPPED_MAX && !facts.is_restarted;
    if are_too_many || facts.source_request.with_token(token.to_owned()) == *facts.source_request {
        Next::FailWithoutItems
    } else {
        Next::SkipPage(token)
    }
}

fn after_failure<'e>(failure: &'e Failure, lost: u64, facts: &Facts<'_>) -> Next<'e> {
    if facts.tried.contains(&Remedy::SingleRecords) {
        return end_after(failure, facts);
    }
    if !facts.sent.can_be_resumed(lost) {
        return Next::Fail(failure);
    }
    let AttemptCounts { attempts, unproven, rewordings, .. } = facts.counts;
    let may_reword = facts.sent == Sent::Nothing && rewordings < REWORDINGS_MAX;
    let at_once = [
        (Remedy::OtherMethod, facts.has_other_method),
        (Remedy::RestartChanged, unproven >= UNPROVEN_MAX && facts.can_restart()),
        (Remedy::OtherForm, may_reword),
    ];
    if let Some(remedy) = facts.untried(at_once) {
        return Next::Try(remedy, failure);
    }
    if let Some(wait) = next_wait(failure, attempts, facts.left, facts.random) {
        return Next::RetryAfter(wait, failure);
    }
    let is_resumption = facts.source_request.is_resumption();
    let when_retries_are_over = [
        (Remedy::RestartExpired, is_resumption && may_have_expired(failure) && facts.can_restart()),
        (Remedy::PrefixWithToken, is_resumption && may_need_prefix(failure)),
        (Remedy::SingleRecords, facts.may_fetch_records_after(failure)),
    ];
    match facts.untried(when_retries_are_over) {
        Some(remedy) => Next::Try(remedy, failure),
        None => end_after(failure, facts),
    }
}

/// How the response ends without its page.
fn end_after<'e>(failure: &'e Failure, facts: &Facts<'_>) -> Next<'e> {
    let remedies = [
        (Remedy::ProvenError, facts.sent == Sent::Nothing),
        (Remedy::OwnToken, facts.sent == Sent::OpenList && facts.has_position),
    ];
    facts.untried(remedies).map_or(Next::Fail(failure), |remedy| Next::Try(remedy, failure))
}

/// Whether a failure may mean that the source has forgotten its token.
fn may_have_expired(failure: &Failure) -> bool {
    failure.reason == Reason::Status
        && failure.received_status.is_some_and(|status| !matches!(status, 401 | 403 | 429 | 503))
}

/// Whether a failure may stand for `badArgument`.
fn may_need_prefix(failure: &Failure) -> bool {
    failure.reason == Reason::Status && matches!(failure.received_status, Some(400 | 422))
}

impl Facts<'_> {
    /// Whether the page may be made of its records, once it has failed several times.
    pub(super) fn may_fetch_records_after(&self, failure: &Failure) -> bool {
        self.may_fetch_records && self.sent != Sent::Final && may_depend_on_request(failure)
    }

    fn can_restart(&self) -> bool {
        self.has_position && self.sent != Sent::Final
    }

    /// The first remedy that applies and was not tried.
    fn untried<const N: usize>(&self, remedies: [(Remedy, bool); N]) -> Option<Remedy> {
        let is_open = |(remedy, applies): &(Remedy, bool)| *applies && !self.tried.contains(remedy);
        remedies.into_iter().find(is_open).map(|(remedy, _)| remedy)
    }
}

impl Sent {
    /// Whether the page may be requested again. `lost` counts the items that were lost after a part of the response
    /// was sent.
    pub(super) fn can_be_resumed(self, lost: u64) -> bool {
        match self {
            Self::Nothing => true,
            Self::OpenList => lost == 0,
            Self::Final => false,
        }
    }
}

impl AttemptCounts {
    /// Begins to count again after a remedy has changed the request.
    pub(super) fn note_change(&mut self, remedy: Remedy) {
        self.attempts = 0;
        if matches!(remedy, Remedy::OtherMethod | Remedy::RestartChanged | Remedy::OtherForm) {
            self.unproven = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_repair::NotOai;

    const LEFT: Duration = Duration::from_secs(30);

    fn request(query: &str) -> Request {
        Request::parse(query.as_bytes()).expect("valid")
    }

    /// A first attempt at a further page of a list, of which nothing was sent.
    fn facts(source_request: &Request) -> Facts<'_> {
        Facts {
            source_request,
            sent: Sent::Nothing,
            counts: AttemptCounts { attempts: 1, ..AttemptCounts::default() },
            has_position: true,
            is_restarted: false,
            has_other_method: false,
            may_fetch_records: true,
            left: LEFT,
            random: 1.0,
            tried: &[],
        }
    }

    /// The same after the last retry.
    fn facts_after_retries(source_request: &Request) -> Facts<'_> {
        Facts { left: Duration::ZERO, ..facts(source_request) }
    }

    fn status(code: u16) -> Failure {
        Failure::new(Reason::Status, "").after_status(code, None)
    }

    /// The decisions until one is no remedy. No remedy has an effect.
    fn all_after(failure: &Failure, facts: Facts<'_>) -> Vec<String> {
        let end = AttemptEnd::failed(failure.clone());
        let (mut tried, mut decisions) = (Vec::new(), Vec::new());
        loop {
            match decide(&end, &Facts { tried: &tried, ..facts }) {
                Next::Try(remedy, _) => {
                    tried.push(remedy);
                    decisions.push(format!("{remedy:?}"));
                }
                Next::RetryAfter(wait, _) => {
                    decisions.push(format!("wait {}", wait.as_millis()));
                    return decisions;
                }
                Next::Fail(_) => {
                    decisions.push("fail".to_owned());
                    return decisions;
                }
                next => panic!("{next:?}"),
            }
        }
    }

    #[test]
    fn ends_without_a_failure() {
        let source_request = request("verb=ListRecords&resumptionToken=t");
        let facts = facts(&source_request);
        let unknown = Facts { has_position: false, ..facts };
        let response = b"<error/>".to_vec();
        let expired = AttemptEnd::expired(response.clone());
        let code = Some(ErrorCode::BadArgument);
        let error = |meaning| AttemptEnd::Error { code, response: response.clone(), meaning };
        let next_page = |token: &str| AttemptEnd::NextPage(token.to_owned());
        let skipped = |pages_skipped, is_restarted| Facts {
            counts: AttemptCounts { pages_skipped, ..facts.counts },
            is_restarted,
            ..facts
        };
        for (end, facts, next) in [
            (AttemptEnd::Whole, facts, Next::Finish),
            (AttemptEnd::Refused, facts, Next::Nothing),
            (next_page("u"), facts, Next::SkipPage("u")),
            (next_page("t"), facts, Next::FailWithoutItems),
            (next_page("u"), skipped(PAGES_SKIPPED_MAX - 1, false), Next::SkipPage("u")),
            (next_page("u"), skipped(PAGES_SKIPPED_MAX, false), Next::FailWithoutItems),
            (next_page("u"), skipped(PAGES_SKIPPED_MAX, true), Next::SkipPage("u")),
            (next_page("t"), skipped(1, true), Next::FailWithoutItems),
            (expired, facts, Next::Restart),
            (
                AttemptEnd::expired(response.clone()),
                unknown,
                Next::SendError(Some(ErrorCode::BadResumptionToken), &response),
            ),
            (error(Meaning::Doubtful), facts, Next::Diagnose(code)),
            (error(Meaning::AsReceived), facts, Next::SendError(code, &response)),
        ] {
            assert_eq!(decide(&end, &facts), next);
        }
        let mut end = AttemptEnd::expired(response.clone());
        end.take_as_received();
        let as_received = Next::SendError(Some(ErrorCode::BadResumptionToken), &response);
        assert_eq!(decide(&end, &facts), as_received, "the restart had no effect");
    }

    #[test]
    fn remedies_follow_in_order_and_each_once() {
        let (first, further) = (
            request("verb=ListRecords&metadataPrefix=oai_dc"),
            request("verb=ListRecords&resumptionToken=t"),
        );
        let (lost, not_the_same) =
            (Failure::new(Reason::ConnectionLost, ""), Failure::new(Reason::NotResumable, ""));
        let counts =
            |unproven, rewordings| AttemptCounts { attempts: 1, unproven, rewordings, pages_skipped: 0 };
        let (facts, over) = (facts(&further), facts_after_retries(&further));
        let first_page = Facts { source_request: &first, ..over };
        let open = Facts { sent: Sent::OpenList, ..over };
        let rows: [(&str, &Failure, Facts<'_>, &[&str]); 18] = [
            ("a first failure", &lost, facts, &["OtherForm", "wait 250"]),
            ("after a part", &lost, Facts { sent: Sent::OpenList, ..facts }, &["wait 250"]),
            ("reworded often", &lost, Facts { counts: counts(0, REWORDINGS_MAX), ..facts }, &["wait 250"]),
            (
                "the method is refused",
                &status(500),
                Facts { has_other_method: true, ..facts },
                &["OtherMethod", "OtherForm", "wait 250"],
            ),
            (
                "another page once",
                &not_the_same,
                Facts { counts: counts(1, 0), ..facts },
                &["OtherForm", "wait 250"],
            ),
            (
                "another page twice",
                &not_the_same,
                Facts { counts: counts(UNPROVEN_MAX, 0), ..facts },
                &["RestartChanged", "OtherForm", "wait 250"],
            ),
            (
                "another page of an unknown list",
                &not_the_same,
                Facts { counts: counts(UNPROVEN_MAX, 0), has_position: false, ..facts },
                &["OtherForm", "wait 250"],
            ),
            ("no time", &lost, over, &["OtherForm", "SingleRecords", "ProvenError", "fail"]),
            (
                "status 500 for a token",
                &status(500),
                over,
                &["OtherForm", "RestartExpired", "SingleRecords", "ProvenError", "fail"],
            ),
            (
                "status 400 for a token",
                &status(400),
                over,
                &["OtherForm", "RestartExpired", "PrefixWithToken", "SingleRecords", "ProvenError", "fail"],
            ),
            (
                "status 400 for a token of an unknown list",
                &status(400),
                Facts { has_position: false, ..over },
                &["OtherForm", "PrefixWithToken", "SingleRecords", "ProvenError", "fail"],
            ),
            (
                "status 400 for a first page",
                &status(400),
                first_page,
                &["OtherForm", "SingleRecords", "ProvenError", "fail"],
            ),
            ("status 503", &status(503), over, &["OtherForm", "ProvenError", "fail"]),
            ("status 403", &status(403), facts, &["OtherForm", "ProvenError", "fail"]),
            (
                "no single records",
                &lost,
                Facts { may_fetch_records: false, ..over },
                &["OtherForm", "ProvenError", "fail"],
            ),
            ("no time after a part", &lost, open, &["SingleRecords", "OwnToken", "fail"]),
            (
                "no time after a part, a bot wall",
                &Failure::new(Reason::NotOai(NotOai::BotWall), ""),
                open,
                &["OwnToken", "fail"],
            ),
            (
                "no time after a part of an unknown list",
                &lost,
                Facts { has_position: false, may_fetch_records: false, ..open },
                &["fail"],
            ),
        ];
        for (case, failure, facts, decisions) in rows {
            assert_eq!(all_after(failure, facts), decisions, "{case}");
        }
    }

    #[test]
    fn nothing_follows_a_part_that_cannot_be_continued() {
        let source_request = request("verb=ListRecords&resumptionToken=t");
        let failure = Failure::new(Reason::ConnectionLost, "");
        let end = |lost| AttemptEnd::Failed { failure: failure.clone(), lost };
        let with = |sent| Facts { sent, has_other_method: true, ..facts(&source_request) };
        let retry = Next::Try(Remedy::OtherMethod, &failure);
        for (sent, lost, next) in [
            (Sent::Nothing, 3, retry),
            (Sent::OpenList, 0, retry),
            (Sent::OpenList, 1, Next::Fail(&failure)),
            (Sent::Final, 0, Next::Fail(&failure)),
        ] {
            assert_eq!(decide(&end(lost), &with(sent)), next, "{sent:?} {lost}");
        }
        let tried = [Remedy::SingleRecords];
        let over = Facts { tried: &tried, ..with(Sent::OpenList) };
        let own_token = Next::Try(Remedy::OwnToken, &failure);
        assert_eq!(decide(&end(0), &over), own_token, "no attempt after single records");
    }

    #[test]
    fn each_change_of_a_request_begins_the_count_again() {
        let counted = AttemptCounts { attempts: 5, unproven: 1, pages_skipped: 7, rewordings: 2 };
        for (remedy, unproven) in [
            (Remedy::OtherMethod, 0),
            (Remedy::RestartChanged, 0),
            (Remedy::OtherForm, 0),
            (Remedy::RestartExpired, 1),
            (Remedy::PrefixWithToken, 1),
        ] {
            let mut counts = counted;
            counts.note_change(remedy);
            assert_eq!((counts.attempts, counts.unproven), (0, unproven), "{remedy:?}");
            assert_eq!((counts.pages_skipped, counts.rewordings), (7, 2));
        }
    }
}
