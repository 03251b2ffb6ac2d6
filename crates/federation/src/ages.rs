//! The times that harvesters can derive from lists of a federation, and the `from` of later lists.
//!
//! Each list has the time of its first page as its responseDate. A harvester continues from there, from the highest
//! datestamp, or from its own clock. So the times from the state that the members have shown up to two hours after now
//! are a span, and a `from` in it is widened to that state ([`oaimend_mirror::Spans`]). A member that shows an old
//! state, because its clock is wrong or its mirror answers, has spans of its own: the other members need not repeat
//! their changes.

use crate::settings::{FederationServices, Member};
use oaimend_mirror::{SpanKind, Spans};
use oaimend_oai::UnixSecs;
use oaimend_store::MirrorError;
use std::sync::Arc;

/// The longest time that the state of a member may be older than its list, in seconds, without spans of its own. A source
/// with days shows the state of the day before.
const SHARED_AGE_SECS_MAX: i64 = 3_600;
const SHARED_AGE_OF_DAYS_SECS_MAX: i64 = 2 * 86_400;

/// The states that the members of a list have shown in one response.
#[derive(Debug, Default)]
pub(crate) struct ShownStates(Vec<(String, UnixSecs)>);

/// The times of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListTimes {
    /// The time of its first page.
    pub(crate) date_secs: UnixSecs,
    /// The latest datestamp of the page.
    pub(crate) latest_secs: Option<UnixSecs>,
    pub(crate) has_days: bool,
}

impl ShownStates {
    pub(crate) fn note(&mut self, member: &str, state_secs: Option<UnixSecs>) {
        // Without any time nothing is known of the state. Each repository writes a responseDate.
        self.0.extend(state_secs.map(|state_secs| (member.to_owned(), state_secs)));
    }

    /// Records the spans of a page that is sent now.
    ///
    /// # Errors
    ///
    /// They are not stored, so the page must not end.
    pub(crate) async fn record(
        &mut self,
        services: &FederationServices,
        federation: &str,
        times: ListTimes,
    ) -> Result<(), MirrorError> {
        let ListTimes { date_secs, latest_secs, has_days } = times;
        let now_secs = services.clock.now_secs();
        let latest_secs = latest_secs.map_or(date_secs, |latest_secs| latest_secs.max(date_secs));
        let age_max = if has_days { SHARED_AGE_OF_DAYS_SECS_MAX } else { SHARED_AGE_SECS_MAX };
        let mut shared_secs = date_secs;
        for (member, state_secs) in std::mem::take(&mut self.0) {
            if date_secs.since(state_secs) <= age_max {
                shared_secs = shared_secs.min(state_secs);
            } else {
                let spans = spans_of_member(services, federation, &member);
                spans.record(state_secs, latest_secs, now_secs).await?;
            }
        }
        let spans = services.spans.of(federation, SpanKind::Source);
        spans.record(shared_secs, latest_secs, now_secs).await
    }
}

fn spans_of_member(services: &FederationServices, federation: &str, member: &str) -> Arc<Spans> {
    // No name of a federation contains a blank.
    services.spans.of(&format!("{federation} {member}"), SpanKind::Source)
}

/// The requested times of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) from_secs: UnixSecs,
    pub(crate) until_secs: UnixSecs,
}

/// The `from` for a member; `None`: all its records up to `until`.
///
/// # Errors
///
/// The store of the spans cannot be read.
pub(crate) async fn from_of_member(
    services: &FederationServices,
    federation: &str,
    member: &Member,
    window: Window,
) -> Result<Option<UnixSecs>, MirrorError> {
    let Window { from_secs, until_secs } = window;
    let shared = services.spans.of(federation, SpanKind::Source);
    let of_member = spans_of_member(services, federation, &member.id);
    let shared_secs = shared.widen(from_secs, Some(until_secs)).await?;
    let widened_secs = of_member.widen(from_secs, Some(until_secs)).await?.min(shared_secs);
    // The window in which the repository joined contains all its records. A harvester that proceeds in steps meets it.
    // The window is the widened one: a repository may have joined during the last list.
    let has_joined = (widened_secs..=until_secs).contains(&member.joined_secs);
    Ok(if has_joined { None } else { Some(widened_secs) })
}
