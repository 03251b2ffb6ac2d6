//! `oaimend explain [REPAIR]`: prints catalog entries, and the reasons for records and responses
//! that are not repaired.

use std::fmt::Write as _;
use std::io;

use clap::Args;
use oaimend_repair::catalog::{CATALOG, CatalogEntry, Effect};
use oaimend_repair::{Certainty, RepairId};

use super::exit::{Exit, Failure, print};
use super::paint::Paint;

/// Line width of the output, in columns.
const WIDTH: usize = 88;
/// Indentation of the texts of an entry, in columns.
const INDENT: usize = 11;

/// Explains a repair: its effect, its purpose and an example. Without a name, lists all
///
/// Also explains why records are quarantined and responses are refused.
#[derive(Debug, Args)]
pub(crate) struct ExplainArguments {
    /// Name of the repair or the reason, as in reports and logs
    #[arg(value_name = "REPAIR")]
    repair: Option<String>,
}

pub(crate) fn run(arguments: &ExplainArguments) -> Result<Exit, Failure> {
    let paint = Paint::for_stream(&io::stdout());
    let Some(name) = &arguments.repair else { return print(list_repairs(paint).as_bytes()) };
    match (RepairId::from_name(name), find_reason(name)) {
        (Some(id), _) => print(describe_repair(id.entry(), paint).as_bytes()),
        (None, Some(why)) => print(format!("{}\n\n{why}\n", paint.strong(name)).as_bytes()),
        (None, None) => Err(Failure::usage(describe_unknown(name))),
    }
}

/// Returns the section of the reference about the reason of that name.
fn find_reason(name: &str) -> Option<&'static str> {
    const PAGE: &str = include_str!("../../docs/reference/unrepairable.md");
    let (_, section) = PAGE.split_once(&format!("\n### {name}\n"))?;
    let end = section.find("\n##").unwrap_or(section.len());
    Some(section[..end].trim())
}

/// One line for each repair: name, certainty, effect.
fn list_repairs(paint: Paint) -> String {
    let names = CATALOG.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for entry in CATALOG {
        let certainty = entry.certainty.name();
        let name = paint.strong(entry.name);
        let margin = names + 2 + 9;
        let what = wrap(entry.what, WIDTH.saturating_sub(margin).max(40), margin);
        writeln!(text, "{name:names$}  {certainty:<7}  {what}").expect("a String takes all text");
    }
    text
}

fn describe_repair(entry: &CatalogEntry, paint: Paint) -> String {
    let certainty = match entry.certainty {
        Certainty::Exact => "exact: only one reading fits the bytes, or XML itself forces the change",
        Certainty::Likely => "likely: a table or a strong sign supports this reading",
        Certainty::Guess => "guess: plausible, but not certain; off unless a mapping turns it on",
        Certainty::Rewrite => "rewrite: not a repair, but the proxy's own words in the response",
    };
    let mut text = format!("{}\n\n", paint.strong(entry.name));
    let before = escape_example(entry.before);
    let after = if entry.after.is_empty() { "(nothing)".to_owned() } else { escape_example(entry.after) };
    let effect = match entry.effect {
        Effect::Form => "form: the input has only this meaning",
        Effect::Content => "content: the result differs, lacks something, or is one of several readings",
    };
    write_field(&mut text, "certainty", paint.faint(wrap(certainty, WIDTH - INDENT, INDENT)));
    if entry.certainty != Certainty::Rewrite {
        write_field(&mut text, "effect", paint.faint(wrap(effect, WIDTH - INDENT, INDENT)));
    }
    write_field(&mut text, "what", wrap(entry.what, WIDTH - INDENT, INDENT));
    write_field(&mut text, "why", wrap(entry.why, WIDTH - INDENT, INDENT));
    write_field(&mut text, "before", paint.bad(before));
    write_field(&mut text, "after", paint.good(after));
    text
}

fn write_field(text: &mut String, label: &str, value: impl std::fmt::Display) {
    let width = INDENT - 2;
    writeln!(text, "{label:<width$}  {value}").expect("a String takes all text");
}

/// Escapes characters that a terminal does not display, and indents all lines but the first.
fn escape_example(example: &str) -> String {
    let mut shown = String::new();
    for c in example.chars() {
        match c {
            '\n' => shown.push_str(&format!("\n{:INDENT$}", "")),
            '\u{feff}' => shown.push_str("<U+FEFF>"),
            c if c.is_control() => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

/// Wraps `text` into lines of at most `width` characters; indents all lines but the first by
/// `indent`.
fn wrap(text: &str, width: usize, indent: usize) -> String {
    let mut lines = String::new();
    let mut column = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > width {
            lines.push('\n');
            lines.extend(std::iter::repeat_n(' ', indent));
            column = 0;
        } else if column > 0 {
            lines.push(' ');
            column += 1;
        }
        lines.push_str(word);
        column += length;
    }
    lines
}

/// The message for an unknown name.
fn describe_unknown(name: &str) -> String {
    let nearest = CATALOG
        .iter()
        .map(|entry| (edit_distance(name, entry.name), entry.name))
        .min()
        .filter(|(distance, nearest)| *distance <= nearest.len() / 3);
    match nearest {
        Some((_, nearest)) => format!("unknown repair {name}; did you mean {nearest}?"),
        None => format!("unknown repair {name}; `oaimend explain` lists all repairs"),
    }
}

/// The number of letters to insert, delete or replace to make `a` from `b`.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
