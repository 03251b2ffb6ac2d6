//! The log: its filter, its output and the format of its lines.

mod gathered_lines;

use gathered_lines::GatheredLines;
use oaimend_base::clock;
use oaimend_base::error::Error;
use serde::Serialize;
use std::fmt::{self, Write as _};
use std::io::{IsTerminal, Stderr};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_log::NormalizeEvent as _;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

/// The running log. Dropping it writes all buffered lines.
#[must_use = "buffered lines are written when it is dropped"]
pub struct Log(GatheredLines<Stderr>);

impl Drop for Log {
    fn drop(&mut self) {
        self.0.flush();
    }
}

/// Writes the log to stderr: text on a terminal, else JSON, one object per line.
///
/// `OAIMEND_LOG` sets the filter, in the syntax of `RUST_LOG`. A second call in one process has no
/// effect.
///
/// # Errors
///
/// `OAIMEND_LOG` is not a filter.
pub fn log_to_stderr() -> Result<Log, Error> {
    let wanted = std::env::var_os("OAIMEND_LOG").filter(|filter| !filter.is_empty());
    let filter = match wanted {
        Some(filter) => read_filter(&filter.to_string_lossy())?,
        // pingora also logs each aborted page; our own line has more details.
        None => EnvFilter::new("info,pingora_core=warn,pingora_proxy=off"),
    };
    let lines = GatheredLines::new(std::io::stderr());
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(lines.clone());
    let without_tokens = filter_fn(may_be_logged);
    let started = if std::io::stderr().is_terminal() {
        log.finish().with(without_tokens).try_init()
    } else {
        log.event_format(JsonLine).finish().with(without_tokens).try_init()
    };
    if started.is_ok() {
        let writer = lines.clone();
        std::thread::spawn(move || writer.run_writer());
    }
    Ok(Log(lines))
}

/// Reads a filter. A single word is a level: the library takes any other word for the name of a crate, whose lines would
/// be the only ones.
fn read_filter(text: &str) -> Result<EnvFilter, Error> {
    let unusable = |part: &str| {
        let part = part.escape_debug();
        let expected =
            "expected error, warn, info, debug, trace or off, or TARGET=LEVEL, separated by commas";
        Error::Usage(format!("OAIMEND_LOG: \"{part}\" is not a filter; {expected}"))
    };
    let is_word =
        |part: &&str| part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_- ".contains(&byte));
    let is_wrong =
        |part: &&str| !part.is_empty() && part.parse::<LevelFilter>().is_err() && *part != "oaimend";
    if let Some(wrong) = text.split(',').map(str::trim).filter(is_word).find(is_wrong) {
        return Err(unusable(wrong));
    }
    EnvFilter::try_new(text).map_err(|_| unusable(text))
}

/// Whether the log may contain an event. At the level `trace`, pingora logs the headers of requests, with the tokens of
/// clients.
fn may_be_logged(event: &Metadata<'_>) -> bool {
    *event.level() != Level::TRACE || !event.target().starts_with("pingora")
}

/// Formats an event as one JSON object: `timestamp`, `level`, the fields in order, `target`.
///
/// The JSON format of `tracing_subscriber` has the same shape but is slower: it passes each word
/// through three writers, on the path of every response.
struct JsonLine;

impl<S, N> FormatEvent<S, N> for JsonLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        writer.write_str(&format_line(event, &clock::utc_micros(clock::now())))
    }
}

/// The capacity for a line, in bytes; most lines are shorter.
const LINE_BYTES: usize = 512;

fn format_line(event: &Event<'_>, time: &str) -> String {
    // Events from the crate `log` carry their origin in fields.
    let normalized = event.normalized_metadata();
    let about = normalized.as_ref().unwrap_or_else(|| event.metadata());
    let mut line = Line(Vec::with_capacity(LINE_BYTES));
    line.field("timestamp", time);
    line.field("level", about.level().as_str());
    event.record(&mut line);
    line.field("target", about.target());
    line.0.extend_from_slice(b"}\n");
    String::from_utf8(line.0).expect("JSON of texts is text")
}

/// The bytes of a line.
struct Line(Vec<u8>);

impl Line {
    fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) {
        if name.starts_with("log.") {
            return;
        }
        self.0.push(if self.0.is_empty() { b'{' } else { b',' });
        self.json(name);
        self.0.push(b':');
        self.json(value);
    }

    fn json<T: Serialize + ?Sized>(&mut self, value: &T) {
        serde_json::to_writer(&mut self.0, value).expect("a text or a number is written into memory");
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let mut text = String::new();
        // If formatting fails, the text so far is used.
        let _ = write!(text, "{value:?}");
        self.field(field.name(), text.as_str());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.field(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.field(field.name(), &value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.field(field.name(), &value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.field(field.name(), &value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.field(field.name(), &value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Metadata, subscriber::with_default};

    /// Keeps what would be written.
    struct Kept(Arc<Mutex<Vec<String>>>);

    impl Subscriber for Kept {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &Event<'_>) {
            let line = format_line(event, "2026-01-02T03:04:05.000006Z");
            self.0.lock().expect("no thread panics").push(line);
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    #[test]
    fn filter_of_one_word_is_a_level() {
        for right in [
            "info",
            "DEBUG",
            "off",
            "oaimend",
            "warn,pingora_core=off",
            "oaimend::serve=trace",
            "info,[page]=debug",
        ] {
            assert!(read_filter(right).is_ok(), "{right}");
        }
        for (wrong, named) in [
            ("dbug", "dbug"),
            ("info,dbug", "dbug"),
            ("inf o", "inf o"),
            ("oaimend=dbug", "oaimend=dbug"),
            ("warn, verbose", "verbose"),
        ] {
            let error = read_filter(wrong).expect_err(wrong).to_string();
            assert!(
                error.starts_with(&format!("OAIMEND_LOG: \"{named}\" is not a filter; expected")),
                "{error}"
            );
        }
    }

    #[test]
    fn a_line_is_one_object_with_its_fields_in_order() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        with_default(Kept(Arc::clone(&lines)), || {
            let (none, some) = (None::<u64>, Some("a \"b\"\n\u{1b}[0m\u{e9}"));
            let error = std::io::Error::other("it \"failed\"");
            tracing::warn!(repo = "x", none, some, count = 3_u64, left = -1, share = 0.5, is = true, %error, "said");
        });
        let lines = lines.lock().expect("no thread panics");
        let expected = concat!(
            r#"{"timestamp":"2026-01-02T03:04:05.000006Z","level":"WARN","message":"said","repo":"x","#,
            r#""some":"a \"b\"\n\u001b[0mé","count":3,"left":-1,"share":0.5,"is":true,"error":"it \"failed\"","#,
            r#""target":"oaimend::log::tests"}"#,
            "\n"
        );
        assert_eq!(*lines, [expected]);
        let read: serde_json::Value = serde_json::from_str(&lines[0]).expect("it is JSON");
        assert_eq!(read["some"], "a \"b\"\n\u{1b}[0m\u{e9}");
    }
}
