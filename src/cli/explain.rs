//! `oaimend explain [REPAIR]`: the catalogue, and why some things are not repaired, for people.

use std::fmt::Write as _;
use std::io;

use clap::Args;
use oaimend::repair::catalog::{CATALOG, CatalogEntry, Effect};
use oaimend::repair::{Certainty, RepairId};

use super::exit::{Exit, Failure, print};
use super::paint::Paint;

/// Where text is broken into lines, in columns.
const WIDTH: usize = 88;
/// Where the text of an entry begins, in columns.
const INDENT: usize = 11;

/// Explains a repair: what it changes, why, and an example. Lists all without a name
///
/// Knows the reasons too for which records are put aside and responses refused.
#[derive(Debug, Args)]
pub(crate) struct ExplainArguments {
    /// Name of the repair or of the reason, as in reports and logs
    #[arg(value_name = "REPAIR")]
    repair: Option<String>,
}

pub(crate) fn run(arguments: &ExplainArguments) -> Result<Exit, Failure> {
    let paint = Paint::for_stream(&io::stdout());
    let Some(name) = &arguments.repair else { return print(list(paint).as_bytes()) };
    match (RepairId::from_name(name), reason(name)) {
        (Some(id), _) => print(describe(id.entry(), paint).as_bytes()),
        (None, Some(why)) => print(format!("{}\n\n{why}\n", paint.strong(name)).as_bytes()),
        (None, None) => Err(Failure::usage(unknown(name))),
    }
}

/// Why an item or a page is not repaired: the section of the reference page with that name.
fn reason(name: &str) -> Option<&'static str> {
    const PAGES: [&str; 2] = [
        include_str!("../../docs/reference/unrepairable.md"),
        include_str!("../../docs/reference/unrepairable-pages.md"),
    ];
    let heading = format!("\n### {name}\n");
    let (_, section) = PAGES.iter().find_map(|page| page.split_once(&heading))?;
    let end = section.find("\n##").unwrap_or(section.len());
    Some(section[..end].trim())
}

/// One line for each repair: name, certainty, the first sentence of what it does.
fn list(paint: Paint) -> String {
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

fn describe(entry: &CatalogEntry, paint: Paint) -> String {
    let certainty = match entry.certainty {
        Certainty::Exact => "exact: only one reading fits the bytes, or XML itself forces the change",
        Certainty::Likely => "likely: a table or a strong sign says so",
        Certainty::Guess => "guess: plausible and no more; off unless a mapping turns it on",
        Certainty::Rewrite => "rewrite: no repair, but what the proxy says of itself",
    };
    let mut text = format!("{}\n\n", paint.strong(entry.name));
    let before = show(entry.before);
    let after = if entry.after.is_empty() { "(nothing)".to_owned() } else { show(entry.after) };
    let effect = match entry.effect {
        Effect::Form => "form: what came can mean only this",
        Effect::Content => "content: what a reader gets is other, less, or one of several readings",
    };
    field(&mut text, "certainty", paint.faint(wrap(certainty, WIDTH - INDENT, INDENT)));
    if entry.certainty != Certainty::Rewrite {
        field(&mut text, "effect", paint.faint(wrap(effect, WIDTH - INDENT, INDENT)));
    }
    field(&mut text, "what", wrap(entry.what, WIDTH - INDENT, INDENT));
    field(&mut text, "why", wrap(entry.why, WIDTH - INDENT, INDENT));
    field(&mut text, "before", paint.bad(before));
    field(&mut text, "after", paint.good(after));
    text
}

fn field(text: &mut String, label: &str, value: impl std::fmt::Display) {
    let width = INDENT - 2;
    writeln!(text, "{label:<width$}  {value}").expect("a String takes all text");
}

/// An example with the characters written out that a terminal does not show,
/// its further lines indented.
fn show(example: &str) -> String {
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

/// `text` in lines of at most `width` characters; all but the first are
/// indented by `indent`.
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

/// What to say about a name that is no repair's.
fn unknown(name: &str) -> String {
    let nearest = CATALOG
        .iter()
        .map(|entry| (edit_distance(name, entry.name), entry.name))
        .min()
        .filter(|(distance, nearest)| *distance <= nearest.len() / 3);
    match nearest {
        Some((_, nearest)) => format!("there is no repair called {name}; did you mean {nearest}?"),
        None => format!("there is no repair called {name}; `oaimend explain` lists them all"),
    }
}

/// How many letters must be added, dropped or changed to make `a` from `b`.
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
