//! Decides which events there are: one when a state begins, one when it ends.
//!
//! Pure: the time is an argument. The events reported so far are an argument too, so that a restart repeats none of them.

use super::event::{Event, EventKind};
use oaimend_oai::UnixSecs;
use oaimend_store::WatchedRepository;
use std::collections::BTreeMap;

/// The state of a repository or of the program now. Times are seconds since 1970.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observation {
    /// The repository; empty for the program.
    pub(crate) repository: String,
    /// The failures since the last success of its source; `None` if the last request succeeded.
    pub(crate) outage: Option<Outage>,
    /// The records in quarantine; `None` if they cannot be counted now.
    pub(crate) quarantine: Option<QuarantineUsage>,
    /// The deletions that wait for a confirmation; `None` if they are not known now.
    pub(crate) held_deletions: Option<u64>,
    /// The folder of its records; `None` if it has none, or it was not looked at yet.
    pub(crate) folder: Option<FolderStatus>,
    /// The end of the certificate of the listener with TLS; `None` if there is none.
    pub(crate) certificate_expires_secs: Option<UnixSecs>,
}

/// What operators must know of a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FolderStatus {
    /// Why the folder cannot be followed now; what it has published stays.
    pub(crate) unreadable: Option<String>,
    /// The number of files that are published as a whole.
    pub(crate) published_files: u64,
    /// The number of paths that are not published, or not as a whole.
    pub(crate) refused_files: u64,
    /// The number of files that have changed or are gone since they were published.
    pub(crate) waiting_files: u64,
    /// The last of them, with the reason.
    pub(crate) last_refused: String,
}

/// The failures of a source since its last success.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outage {
    /// The time of the first one.
    pub(crate) since_secs: UnixSecs,
    /// The time of the last one that was a request to the source.
    pub(crate) last_secs: UnixSecs,
    /// The kind of the last one.
    pub(crate) reason: String,
    /// What happened last, and what to do.
    pub(crate) details: String,
}

/// How much a quarantine contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QuarantineUsage {
    /// Its records.
    pub(crate) records: u64,
    /// Its bytes on disk.
    pub(crate) bytes: u64,
    /// The limit of its bytes.
    pub(crate) bytes_max: u64,
}

/// When states begin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rules {
    /// How long a source fails before it is down, in seconds.
    pub(crate) source_down_after_secs: i64,
    /// The share of its limit from which on a quarantine is nearly full.
    pub(crate) quarantine_share: f64,
    /// The shortest time between two events about lost records of one repository, in seconds.
    pub(crate) records_lost_interval_secs: i64,
    /// How long before its end a certificate is reported, in seconds.
    pub(crate) certificate_warning_secs: i64,
}

/// How long lost records are gathered for the first event about them, in seconds. A harvest finds them one after the
/// other.
const LOST_GATHER_SECS: i64 = 60;
/// A quarantine has space again below this part of the share, so that one record more or less changes nothing.
const HAS_SPACE_BELOW: f64 = 0.9;

/// The events since the last call, in the order of the repositories. `watched` is what was reported before;
/// repositories without an observation are forgotten.
pub(crate) fn events(
    rules: &Rules,
    watched: &mut BTreeMap<String, WatchedRepository>,
    now_secs: UnixSecs,
    observations: &[Observation],
) -> Vec<Event> {
    watched.retain(|id, _| observations.iter().any(|observation| observation.repository == *id));
    let mut events = Vec::new();
    for observation in observations {
        let state = watched.entry(observation.repository.clone()).or_default();
        let kinds = [
            source_event(rules, state, observation.outage.as_ref()),
            observation.quarantine.and_then(|usage| lost_event(rules, state, now_secs, usage.records)),
            observation.quarantine.and_then(|usage| quarantine_event(rules, state, usage)),
            observation.held_deletions.and_then(|held| deletions_event(state, held)),
            observation.folder.as_ref().and_then(|folder| folder_event(state, folder)),
            observation.folder.as_ref().and_then(|folder| files_event(state, folder)),
            observation
                .certificate_expires_secs
                .and_then(|expires_secs| certificate_event(rules, state, now_secs, expires_secs)),
        ];
        let repository = &observation.repository;
        let event = |kind| Event { at_secs: now_secs, repository: repository.clone(), kind };
        events.extend(kinds.into_iter().flatten().map(event));
    }
    events
}

/// A single failure long ago is no outage: the last failure must be as long after the first one.
fn source_event(rules: &Rules, state: &mut WatchedRepository, outage: Option<&Outage>) -> Option<EventKind> {
    match (state.down_since_secs, outage) {
        (None, Some(outage)) if outage.last_secs.since(outage.since_secs) >= rules.source_down_after_secs => {
            state.down_since_secs = Some(outage.since_secs);
            let Outage { since_secs, reason, details, .. } = outage.clone();
            Some(EventKind::SourceDown { since_secs, reason, details })
        }
        (Some(since_secs), None) => {
            state.down_since_secs = None;
            Some(EventKind::SourceRecovered { since_secs })
        }
        _ => None,
    }
}

/// The first count of a repository is no loss: the records may be old.
fn lost_event(
    rules: &Rules,
    state: &mut WatchedRepository,
    now_secs: UnixSecs,
    quarantined: u64,
) -> Option<EventKind> {
    let new = quarantined.saturating_sub(state.quarantined.unwrap_or(quarantined));
    state.quarantined = Some(quarantined);
    if new > 0 {
        state.lost += new;
        state.lost_since_secs.get_or_insert(now_secs);
    }
    // After a clock was set back, the waits begin again.
    let since_secs = state.lost_since_secs?.min(now_secs);
    state.lost_since_secs = Some(since_secs);
    state.lost_reported_at_secs =
        state.lost_reported_at_secs.map(|reported_at_secs| reported_at_secs.min(now_secs));
    let has_passed = |at_secs: UnixSecs, wait_secs: i64| now_secs.since(at_secs) >= wait_secs;
    let reported_long_ago = state
        .lost_reported_at_secs
        .is_none_or(|reported| has_passed(reported, rules.records_lost_interval_secs));
    if !reported_long_ago || !has_passed(since_secs, LOST_GATHER_SECS) {
        return None;
    }
    (state.lost_since_secs, state.lost_reported_at_secs) = (None, Some(now_secs));
    Some(EventKind::RecordsLost { count: std::mem::take(&mut state.lost), since_secs, quarantined })
}

fn quarantine_event(
    rules: &Rules,
    state: &mut WatchedRepository,
    usage: QuarantineUsage,
) -> Option<EventKind> {
    let QuarantineUsage { bytes, bytes_max, .. } = usage;
    let limit = bytes_max as f64 * rules.quarantine_share;
    if !state.is_quarantine_nearly_full && bytes > 0 && bytes as f64 >= limit {
        state.is_quarantine_nearly_full = true;
        return Some(EventKind::QuarantineNearlyFull { bytes, bytes_max });
    }
    if state.is_quarantine_nearly_full && (bytes as f64) < limit * HAS_SPACE_BELOW {
        state.is_quarantine_nearly_full = false;
        return Some(EventKind::QuarantineHasSpace { bytes, bytes_max });
    }
    None
}

fn deletions_event(state: &mut WatchedRepository, held: u64) -> Option<EventKind> {
    let (held_before, is_held) = (state.has_held_deletions, held > 0);
    state.has_held_deletions = is_held;
    match (held_before, is_held) {
        (false, true) => Some(EventKind::DeletionsHeld { count: held }),
        (true, false) => Some(EventKind::DeletionsReleased),
        _ => None,
    }
}

fn folder_event(state: &mut WatchedRepository, folder: &FolderStatus) -> Option<EventKind> {
    let before = std::mem::replace(&mut state.is_folder_unreadable, folder.unreadable.is_some());
    match (before, &folder.unreadable) {
        (false, Some(details)) => Some(EventKind::FolderUnreadable { details: details.clone() }),
        (true, None) => Some(EventKind::FolderReadable),
        _ => None,
    }
}

fn files_event(state: &mut WatchedRepository, folder: &FolderStatus) -> Option<EventKind> {
    let before = std::mem::replace(&mut state.refused_files, folder.refused_files);
    let (count, details) = (folder.refused_files, folder.last_refused.clone());
    (count > before).then_some(EventKind::FilesRefused { count, details })
}

/// A new certificate that ends soon too is reported again.
fn certificate_event(
    rules: &Rules,
    state: &mut WatchedRepository,
    now_secs: UnixSecs,
    expires_secs: UnixSecs,
) -> Option<EventKind> {
    let is_near = expires_secs.since(now_secs) < rules.certificate_warning_secs;
    let reported = std::mem::replace(&mut state.certificate_expiring_secs, is_near.then_some(expires_secs));
    match (reported, is_near) {
        (reported, true) if reported != Some(expires_secs) => {
            Some(EventKind::CertificateExpiring { expires_secs })
        }
        (Some(_), false) => Some(EventKind::CertificateRenewed { expires_secs }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules {
        source_down_after_secs: 900,
        quarantine_share: 0.8,
        records_lost_interval_secs: 3600,
        certificate_warning_secs: 1_000,
    };

    /// The names of the events of one observation of `x`.
    struct Watch(BTreeMap<String, WatchedRepository>);

    impl Watch {
        fn new() -> Self {
            Self(BTreeMap::new())
        }

        fn see(&mut self, now_secs: i64, change: impl FnOnce(&mut Observation)) -> Vec<EventKind> {
            let mut observation = Observation { repository: "x".to_owned(), ..Observation::default() };
            change(&mut observation);
            let found = events(&RULES, &mut self.0, UnixSecs(now_secs), &[observation]);
            assert!(found.iter().all(|event| event.repository == "x" && event.at_secs == UnixSecs(now_secs)));
            found.into_iter().map(|event| event.kind).collect()
        }

        fn outage(&mut self, outage: Option<(UnixSecs, UnixSecs)>) -> Vec<EventKind> {
            let (reason, details) = ("dns".to_owned(), "gone".to_owned());
            let outage =
                outage.map(|(since_secs, last_secs)| Outage { since_secs, last_secs, reason, details });
            self.see(100_000, |observation| observation.outage = outage)
        }

        fn records(&mut self, now_secs: i64, records: u64) -> Vec<(u64, UnixSecs, u64)> {
            let usage = QuarantineUsage { records, bytes: 0, bytes_max: 100 };
            let found = self.see(now_secs, |observation| observation.quarantine = Some(usage));
            let lost = |kind| match kind {
                EventKind::RecordsLost { count, since_secs, quarantined } => (count, since_secs, quarantined),
                other => panic!("{other:?}"),
            };
            found.into_iter().map(lost).collect()
        }

        fn bytes(&mut self, bytes: u64) -> Vec<EventKind> {
            let usage = QuarantineUsage { records: 0, bytes, bytes_max: 100 };
            self.see(0, |observation| observation.quarantine = Some(usage))
        }
    }

    #[test]
    fn source_is_down_once_after_the_time_and_recovers_once() {
        let mut watch = Watch::new();
        assert_eq!(
            watch.outage(Some((UnixSecs(1_000), UnixSecs(1_000)))),
            [],
            "one failure, however long ago"
        );
        assert_eq!(watch.outage(Some((UnixSecs(1_000), UnixSecs(1_899)))), []);
        let down = EventKind::SourceDown {
            since_secs: UnixSecs(1_000),
            reason: "dns".to_owned(),
            details: "gone".to_owned(),
        };
        assert_eq!(watch.outage(Some((UnixSecs(1_000), UnixSecs(1_900)))), [down]);
        assert_eq!(watch.outage(Some((UnixSecs(1_000), UnixSecs(9_000)))), []);
        assert_eq!(watch.outage(None), [EventKind::SourceRecovered { since_secs: UnixSecs(1_000) }]);
        assert_eq!(watch.outage(None), []);
        assert_eq!(watch.outage(Some((UnixSecs(20_000), UnixSecs(20_899)))), []);
        assert_eq!(watch.outage(Some((UnixSecs(20_000), UnixSecs(20_900)))).len(), 1, "the next outage");
    }

    #[test]
    fn lost_records_are_gathered_into_one_event_an_interval() {
        let mut watch = Watch::new();
        assert_eq!(watch.records(1_000, 7), [], "old records are no loss");
        assert_eq!(watch.records(1_010, 8), []);
        assert_eq!(watch.records(1_069, 10), []);
        assert_eq!(watch.records(1_070, 10), [(3, UnixSecs(1_010), 10)]);
        assert_eq!(watch.records(1_080, 11), []);
        assert_eq!(watch.records(4_669, 12), []);
        assert_eq!(watch.records(4_670, 12), [(2, UnixSecs(1_080), 12)]);
        assert_eq!(watch.records(9_000, 2), [], "removed by an operator");
        assert_eq!(watch.records(9_001, 3), []);
        assert_eq!(watch.records(9_061, 3), [(1, UnixSecs(9_001), 3)]);
        assert_eq!(watch.records(9_062, 4), []);
        assert_eq!(watch.records(100, 4), [], "the clock was set back");
        assert_eq!(watch.records(3_700, 4), [(1, UnixSecs(100), 4)]);
    }

    #[test]
    fn quarantine_is_nearly_full_until_it_is_clearly_below_the_share() {
        let mut watch = Watch::new();
        let bytes_max = 100;
        assert_eq!(watch.bytes(79), []);
        assert_eq!(watch.bytes(80), [EventKind::QuarantineNearlyFull { bytes: 80, bytes_max }]);
        for bytes in [100, 80, 79, 72] {
            assert_eq!(watch.bytes(bytes), [], "{bytes}");
        }
        assert_eq!(watch.bytes(71), [EventKind::QuarantineHasSpace { bytes: 71, bytes_max }]);
        assert_eq!(watch.bytes(71), []);
    }

    #[test]
    fn held_deletions_are_told_once_until_they_are_released() {
        let mut watch = Watch::new();
        let mut held = |held| watch.see(0, |observation| observation.held_deletions = held);
        assert_eq!(held(Some(0)), []);
        assert_eq!(held(Some(12)), [EventKind::DeletionsHeld { count: 12 }]);
        assert_eq!(held(None), [], "unknown for a moment");
        assert_eq!(held(Some(13)), []);
        assert_eq!(held(Some(0)), [EventKind::DeletionsReleased]);
        assert_eq!(held(Some(0)), []);
    }

    #[test]
    fn certificate_is_reported_once_until_it_is_renewed() {
        let mut watch = Watch::new();
        let mut see = |now_secs, expires_secs| {
            watch.see(now_secs, |observation| observation.certificate_expires_secs = Some(expires_secs))
        };
        assert_eq!(see(4_000, UnixSecs(5_000)), []);
        assert_eq!(
            see(4_001, UnixSecs(5_000)),
            [EventKind::CertificateExpiring { expires_secs: UnixSecs(5_000) }]
        );
        assert_eq!(see(6_000, UnixSecs(5_000)), [], "it has ended");
        assert_eq!(
            see(6_001, UnixSecs(7_000)),
            [EventKind::CertificateExpiring { expires_secs: UnixSecs(7_000) }],
            "a short one"
        );
        assert_eq!(
            see(6_002, UnixSecs(9_000)),
            [EventKind::CertificateRenewed { expires_secs: UnixSecs(9_000) }]
        );
        assert_eq!(see(6_003, UnixSecs(9_000)), []);
    }

    #[test]
    fn removed_repositories_are_forgotten() {
        let mut watch = Watch::new();
        assert_eq!(watch.outage(Some((UnixSecs(0), UnixSecs(900)))).len(), 1);
        assert!(events(&RULES, &mut watch.0, UnixSecs(0), &[]).is_empty() && watch.0.is_empty());
    }
}
