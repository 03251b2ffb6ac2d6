//! The invariants of ARCHITECTURE.md, one function each.
//!
//! Each takes an input and a run, and returns the violation. The corpus, the recorded responses,
//! random documents and the fuzzers use the same functions.

use encoding_rs::DecoderResult;
use oaimend_repair::journal::{Change, replay, undo};
use oaimend_repair::{Ending, Limits, Outcome, QuarantineReason, RepairConfig, RepairId, TagCache};

use super::envelope::Strictness;
use super::harness::{Chunking, Run, excerpt, run, run_with_cache};
use super::{events, strict};

/// The comment in a closed document whose list is truncated.
pub const CUT_SHORT: &str = "<!-- oaimend: input ended early, list is incomplete -->";

/// Checks all invariants that need one input and one way to cut it.
pub fn all(input: &[u8], config: &RepairConfig, judge: Judge) -> Result<Run, String> {
    let whole = run(input, config, Chunking::Whole);
    in_order(&whole)?;
    events::match_output(&whole)?;
    accountable(input, &whole)?;
    bounded(&whole, &config.limits)?;
    valid(&whole, config, judge)?;
    idempotent(&whole, config)?;
    memory_invariant(input, &whole, config, Chunking::Whole)?;
    Ok(whole)
}

/// A judge of documents.
pub type Judge = fn(&[u8], Strictness) -> Result<(), String>;

/// The text that the journal refers to: the input, decoded if it is not UTF-8.
pub fn decoded_text(input: &[u8], run: &Run) -> Vec<u8> {
    let label = run.summary.decoded_as;
    let mut text = Vec::new();
    if let Some((_, order)) = label.split_once("UTF-16") {
        let units = input.chunks(2).filter_map(|unit| number(unit, 2, order));
        for c in char::decode_utf16(units.map(|unit| unit as u16)) {
            push(c.map_or_else(|lone| lone.unpaired_surrogate().into(), u32::from), &mut text);
        }
        if !input.len().is_multiple_of(2) {
            push(u32::MAX, &mut text);
        }
    } else if let Some((_, order)) = label.split_once("UTF-32") {
        input.chunks(4).for_each(|unit| push(number(unit, 4, order).unwrap_or(u32::MAX), &mut text));
    } else {
        let encoding = encoding_rs::Encoding::for_label(label.as_bytes()).expect("a charset");
        if encoding == encoding_rs::UTF_8 {
            return input.to_vec();
        }
        let mut decoder = encoding.new_decoder_without_bom_handling();
        let (mut at, mut result) = (0, DecoderResult::OutputFull);
        while result != DecoderResult::InputEmpty {
            let mut buffer = [0; 1024];
            let (decoded, read, written) =
                decoder.decode_to_utf8_without_replacement(&input[at..], &mut buffer, true);
            text.extend_from_slice(&buffer[..written]);
            (at, result) = (at + read, decoded);
            if matches!(result, DecoderResult::Malformed(..)) {
                push(u32::MAX, &mut text);
            }
        }
        return text;
    }
    text.strip_prefix(b"\xEF\xBB\xBF").map(<[u8]>::to_vec).unwrap_or(text)
}

/// Reads a unit of a wide charset; `None` for an incomplete one.
fn number(unit: &[u8], len: usize, order: &str) -> Option<u32> {
    let big_endian = |value: u32, byte: &u8| value << 8 | u32::from(*byte);
    let number = match order {
        "BE" => unit.iter().fold(0, big_endian),
        _ => unit.iter().rev().fold(0, big_endian),
    };
    (unit.len() == len).then_some(number)
}

/// Writes a character in UTF-8, a surrogate in CESU-8, and anything else in a form that no text
/// contains.
fn push(code: u32, text: &mut Vec<u8>) {
    let bits = |shift: u32| 0x80 | (code >> shift & 0x3F) as u8;
    match char::from_u32(code) {
        Some(c) => text.extend_from_slice(c.to_string().as_bytes()),
        None if code < 0xE000 => text.extend_from_slice(&[0xED, bits(6), bits(0)]),
        None => text.extend_from_slice(&[0xF4, 0x90, 0x80, 0x80]),
    }
}

/// First do no harm: the output equals the input, and the journal is empty.
pub fn identity(input: &[u8], run: &Run) -> Result<(), String> {
    if run.output != input {
        return Err(format!("not left as it was: {}", difference(&run.output, input)));
    }
    if let Some(entry) = run.journal.first() {
        return Err(format!("a journal of {} entries, first {entry:?}", run.journal.len()));
    }
    if run.summary.outcome != Outcome::Clean {
        return Err(format!("outcome {:?}", run.summary.outcome));
    }
    Ok(())
}

/// The sink received everything in order.
pub fn in_order(run: &Run) -> Result<(), String> {
    if let Some(fault) = run.faults.first() {
        return Err(fault.clone());
    }
    let mut at = 0;
    for item in &run.items {
        let found = find(&run.output[at..], &item.bytes)
            .ok_or_else(|| format!("item {} is not in the output", item.identifier.escape_ascii()))?;
        at += found + item.bytes.len();
    }
    let (items, records) = (run.items.len() as u64, run.summary.records);
    if items != records {
        return Err(format!("{items} items were committed, the summary says {records}"));
    }
    let quarantined =
        run.journal.iter().filter(|entry| matches!(entry.change, Change::Quarantined(_))).count();
    if quarantined as u64 != run.summary.quarantined {
        return Err(format!("{quarantined} items quarantined, the summary says {}", run.summary.quarantined));
    }
    for entry in oaimend_repair::catalog::CATALOG {
        let reported = run.journal.iter().filter(|made| made.change == Change::Repaired(entry.id)).count();
        let counted = run.summary.repairs.of(entry.id);
        if reported as u64 != counted {
            return Err(format!("{} was reported {reported} times and counted {counted}", entry.name));
        }
    }
    Ok(())
}

/// Replay gives the output, undo gives the text: the journal or the quarantine contains everything
/// that was lost.
pub fn accountable(input: &[u8], run: &Run) -> Result<(), String> {
    if let Outcome::NotOai(_) = run.summary.outcome {
        // Without output, quarantined items must still equal the text at their position.
        return if run.output.is_empty() {
            Ok(())
        } else {
            Err("not OAI-PMH, but bytes went out".to_owned())
        };
    }
    let text = decoded_text(input, run);
    match replay(&text, &run.journal) {
        None => return Err(format!("the journal does not fit the text: {}", first_misfit(&text, run))),
        Some(replayed) if replayed != run.output => {
            return Err(format!("replay gives another output: {}", difference(&run.output, &replayed)));
        }
        Some(_) => {}
    }
    match undo(&run.output, &run.journal) {
        Some(undone) if undone == text => {}
        Some(undone) => return Err(format!("undo gives another text: {}", difference(&undone, &text))),
        None => return Err("the journal does not fit the output".to_owned()),
    }
    let clean = run.journal.iter().all(|entry| match entry.change {
        Change::Repaired(id) => id.is_rewrite(),
        Change::Quarantined(_) => false,
    });
    if clean != (run.summary.outcome == Outcome::Clean) && run.summary.outcome != Outcome::Truncated {
        return Err(format!("{} journal entries and {:?}", run.journal.len(), run.summary.outcome));
    }
    Ok(())
}

/// The output is well-formed and valid, or empty.
pub fn valid(run: &Run, config: &RepairConfig, judge: Judge) -> Result<(), String> {
    if run.output.is_empty() {
        return match run.summary.outcome {
            Outcome::NotOai(_) => Ok(()),
            Outcome::Truncated if config.ending == Ending::Abort => Ok(()),
            other => Err(format!("no output, but {other:?}")),
        };
    }
    if run.summary.outcome == Outcome::Truncated && config.ending == Ending::Abort {
        if is_unread_behind_root(run) {
            // Items after the root are found when it has been sent; only the verdict can report
            // them.
            return Ok(());
        }
        return match judge(&run.output, Strictness::TokenAlone) {
            Ok(()) => Err("a neat early end: cut short, but what went out is a whole document".to_owned()),
            Err(_) => Ok(()),
        };
    }
    if run.summary.outcome == Outcome::Truncated && find(&run.output, CUT_SHORT.as_bytes()).is_none() {
        return Err("cut short, but the comment that says so is not there".to_owned());
    }
    if run.summary.unresolved > 0 {
        // Unknown values of the repository are not invented, but reported.
        let lacking = judge(&run.output, Strictness::Schema).is_err();
        let root = strict::read(&run.output)?;
        let verb = root.children.last().map(|verb| verb.name.as_str());
        return match (lacking, verb, run.unresolved.len() as u64 == run.summary.unresolved) {
            (true, Some("Identify"), true) => Ok(()),
            _ => Err(format!("{:?} lacking in {verb:?}, valid {}", run.unresolved, !lacking)),
        };
    }
    let items = run.summary.records > 0;
    let strictness = if items { Strictness::Schema } else { Strictness::TokenAlone };
    judge(&run.output, strictness).map_err(|error| format!("{error}\n    in {}", excerpt(&run.output, 0)))
}

/// Whether quarantined text after the last tag of the output contains an item.
fn is_unread_behind_root(run: &Run) -> bool {
    let written = run.output.trim_ascii_end().len() as i128;
    let (mut drift, mut is_behind) = (0_i128, false);
    for entry in &run.journal {
        let is_unread = entry.change == Change::Quarantined(QuarantineReason::UnreadItem);
        is_behind |= is_unread && i128::from(entry.offset) + drift >= written;
        drift += entry.replacement.len() as i128 - entry.original.len() as i128;
    }
    is_behind
}

/// Repairing the output changes nothing.
pub fn idempotent(run: &Run, config: &RepairConfig) -> Result<(), String> {
    let breaks_off = config.ending == Ending::Abort && run.summary.outcome == Outcome::Truncated;
    if run.output.is_empty() || breaks_off {
        return Ok(());
    }
    // The output is UTF-8, whatever charset the input had.
    let mut again = config.clone();
    again.charset = None;
    let second = self::run(&run.output, &again, Chunking::Whole);
    if second.output != run.output {
        let change = second.journal.first();
        let made = change.map_or("refused then".to_owned(), |entry| match entry.change {
            Change::Repaired(id) => format!("{id:?} then"),
            Change::Quarantined(_) => "quarantined then".to_owned(),
        });
        return Err(format!(
            "repaired twice, {made} {}, {change:?}",
            difference(&second.output, &run.output)
        ));
    }
    match second.journal.iter().find(|entry| !matches!(entry.change, Change::Repaired(id) if id.is_rewrite()))
    {
        Some(entry) => Err(format!("the second pass has a journal: {entry:?}")),
        None => Ok(()),
    }
}

/// Another way to cut the input gives the same results.
pub fn chunk_invariant(
    input: &[u8],
    whole: &Run,
    config: &RepairConfig,
    chunking: Chunking,
) -> Result<(), String> {
    same_as(whole, &run(input, config, chunking), config).map_err(|error| format!("{chunking:?}: {error}"))
}

/// Earlier input makes no difference; here the engine has read the same input before.
pub fn memory_invariant(
    input: &[u8],
    whole: &Run,
    config: &RepairConfig,
    chunking: Chunking,
) -> Result<(), String> {
    let (_, memory) = run_with_cache(input, config, Chunking::Whole, TagCache::default());
    let (again, _) = run_with_cache(input, config, chunking, memory);
    same_as(whole, &again, config).map_err(|error| format!("remembered, {chunking:?}: {error}"))
}

/// Another run over the same input gives the same results.
pub fn same_as(whole: &Run, cut: &Run, config: &RepairConfig) -> Result<(), String> {
    in_order(cut)?;
    if cut.output != whole.output {
        return Err(format!("another output: {}", difference(&cut.output, &whole.output)));
    }
    if cut.journal != whole.journal {
        let at = cut.journal.iter().zip(&whole.journal).take_while(|(one, other)| one == other).count();
        return Err(format!(
            "another journal: {:?} instead of {:?}",
            cut.journal.get(at),
            whole.journal.get(at)
        ));
    }
    if cut.items != whole.items || cut.tokens != whole.tokens {
        let (got, expected) = (items_of(cut), items_of(whole));
        return Err(format!("other items or tokens: {got}\n    instead of {expected}"));
    }
    if cut.swallowed != whole.swallowed {
        return Err(format!("items in sections: {:?} instead of {:?}", cut.swallowed, whole.swallowed));
    }
    let mut summary = cut.summary.clone();
    summary.held_bytes_peak = whole.summary.held_bytes_peak;
    if summary != whole.summary {
        return Err(format!("ends with {:?}, whole with {:?}", cut.summary, whole.summary));
    }
    bounded(cut, &config.limits)
}

fn items_of(run: &Run) -> String {
    let tokens = run.tokens.iter().map(|token| format!("token {}", token.escape_ascii()));
    let items = run.items.iter().map(|item| {
        format!(
            "{} at {}, {} repairs, {} bytes",
            item.identifier.escape_ascii(),
            item.offset,
            item.repairs,
            item.bytes.len()
        )
    });
    items.chain(tokens).collect::<Vec<_>>().join("; ")
}

/// The engine's memory depends only on the limits.
pub fn bounded(run: &Run, limits: &Limits) -> Result<(), String> {
    let allowed = 3 * limits.record_bytes_max
        + 2 * (limits.head_bytes_max + limits.tag_bytes_max + limits.junk_bytes_max)
        + (128 << 10);
    if run.summary.held_bytes_peak <= allowed {
        return Ok(());
    }
    Err(format!("{} bytes held, {allowed} allowed by {limits:?}", run.summary.held_bytes_peak))
}

/// Good records are sent unchanged and in order.
pub fn neighbours<'a>(run: &Run, good: impl IntoIterator<Item = &'a [u8]>) -> Result<(), String> {
    let mut items = run.items.iter();
    for record in good {
        let left = items.by_ref().any(|item| item.bytes == record);
        if !left {
            let somewhere = find(&run.output, record).map_or("nowhere", |_| "no item, but in the output");
            return Err(format!("a good record is {somewhere}: {}", excerpt(record, 0)));
        }
    }
    Ok(())
}

/// The output of a truncated list does not look complete.
pub fn never_looks_complete(run: &Run) -> Result<(), String> {
    match run.summary.outcome {
        Outcome::Truncated | Outcome::NotOai(_) => {}
        other => return Err(format!("cut short, but {other:?}")),
    }
    if let Some(token) = run.tokens.first() {
        return Err(format!("cut short, but a token goes out: {}", token.escape_ascii()));
    }
    if run.summary.repairs.of(RepairId::EmptyList) > 0 {
        return Err("cut short, but an error says that the list is empty".to_owned());
    }
    Ok(())
}

/// A page that contains a complete record does not become an error response. Sections and
/// processing instructions are ignored.
pub fn no_error_beside_records(input: &[u8], run: &Run) -> Result<(), String> {
    let holds = |mark: &[u8]| find(input, mark).is_some();
    let instructs = memchr::memmem::find_iter(input, b"<?").any(|at| !input[at + 2..].starts_with(b"xml"));
    if holds(b"<!--") || holds(b"<![CDATA[") || instructs || !holds(b"<record><header><identifier>") {
        return Ok(());
    }
    let nothing = run.items.is_empty() && run.summary.quarantined == 0 && run.summary.lost == 0;
    if nothing && find(&run.output, b"<error code=").is_some() {
        return Err(format!("an error beside a record: {}", excerpt(&run.output, run.output.len())));
    }
    Ok(())
}

/// Describes the first difference of two texts.
pub fn difference(got: &[u8], expected: &[u8]) -> String {
    let at = got.iter().zip(expected).take_while(|(one, other)| one == other).count();
    format!(
        "at byte {at} ({} and {} long)\n    got      {}\n    expected {}",
        got.len(),
        expected.len(),
        excerpt(got, at),
        excerpt(expected, at)
    )
}

/// The position of a slice in another.
pub fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    memchr::memmem::find(haystack, needle)
}

fn first_misfit(text: &[u8], run: &Run) -> String {
    let misfit = run.journal.iter().find(|entry| {
        let start = usize::try_from(entry.offset).unwrap_or(usize::MAX);
        text.get(start..start.saturating_add(entry.original.len())) != Some(&entry.original[..])
    });
    misfit.map_or("entries out of order".to_owned(), |entry| {
        let at = usize::try_from(entry.offset).unwrap_or(usize::MAX);
        format!("{entry:?}, the text is {}", excerpt(text, at))
    })
}
