//! The result of a repair: the exit code and the message.

use oaimend_repair::{NotOai, Outcome, Summary};

use crate::cli::exit::Exit;

/// The exit code for scripts.
pub(super) fn exit_code(summary: &Summary) -> Exit {
    match summary.outcome {
        Outcome::NotOai(NotOai::NothingKept) | Outcome::Truncated => Exit::Incomplete,
        Outcome::NotOai(_) => Exit::NotOai,
        _ if summary.quarantined + summary.lost + summary.unresolved > 0 => Exit::Incomplete,
        Outcome::Clean | Outcome::Repaired => Exit::Success,
    }
}

/// The result in one line; `None` for an unchanged response.
pub(super) fn describe(summary: &Summary, has_report: bool) -> Option<String> {
    let mut parts = vec![match summary.outcome {
        Outcome::NotOai(reason) => return Some(reason.message().to_owned()),
        Outcome::Clean if summary.unresolved + summary.swallowed == 0 => return None,
        Outcome::Clean => "unchanged".to_owned(),
        Outcome::Repaired => "repaired".to_owned(),
        Outcome::Truncated => "ended early, the list is incomplete".to_owned(),
    }];
    let lost = summary.quarantined + summary.lost - summary.unread;
    if summary.records + lost > 0 {
        parts.push(format!("{} kept", format_count(summary.records, "item")));
    }
    if lost > 0 {
        let hint = if has_report { "" } else { " (--report FILE lists them with reasons)" };
        parts.push(format!("{lost} lost{hint}"));
    }
    if summary.swallowed > 0 {
        let hint = if has_report { "" } else { " (--report FILE lists them)" };
        parts.push(format!(
            "{} inside CDATA sections, kept as text{hint}",
            format_count(summary.swallowed, "item")
        ));
    }
    if summary.unresolved > 0 {
        let hint = if has_report { "" } else { " (--report FILE lists them)" };
        parts.push(format!(
            "{} missing, with unknown values{hint}",
            format_count(summary.unresolved, "required element")
        ));
    }
    parts.extend(summary.repairs.iter().map(|(id, count)| format!("{} {count}", id.entry().name)));
    Some(parts.join(", "))
}

fn format_count(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
