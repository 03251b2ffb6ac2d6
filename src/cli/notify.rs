//! `oaimend notify`: checks that operators receive notifications.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use oaimend::config::Config;
use oaimend::notify::{Event, EventKind, Mail, WebhookMessage, describe};
use oaimend_base::clock::{self, SystemClock};
use oaimend_base::error::{Error, Fault};

use super::data_arguments::ConfigArguments;
use super::exit::{Exit, Failure, print};

/// Checks that operators receive notifications
#[derive(Debug, Args)]
pub(crate) struct NotifyArguments {
    #[command(subcommand)]
    command: NotifyCommand,
    #[command(flatten)]
    config: ConfigArguments,
}

#[derive(Debug, Subcommand)]
enum NotifyCommand {
    /// Sends a test event to each configured target, once, and prints which accept it
    Test,
}

pub(crate) fn run(arguments: NotifyArguments) -> Result<Exit, Failure> {
    let NotifyArguments { command: NotifyCommand::Test, config } = arguments;
    let file = config.config.clone().unwrap_or_else(|| PathBuf::from("oaimend.toml"));
    let config = config.load()?;
    if !config.notifications.has_target() {
        let text = "there is no target of notifications; add [notifications.webhook] or [notifications.mail]";
        return Err(Error::Config(vec![Fault { file, line: 1, text: text.to_owned() }]).into());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::io("start", Path::new("the network"), &error))?;
    let results = runtime.block_on(send(&config));
    let mut text = String::new();
    for (target, result) in &results {
        // Writing to a string does not fail.
        let _ = match result {
            Ok(how) => writeln!(text, "{target}: accepted{how}"),
            Err(problem) => writeln!(text, "{target}: not accepted: {problem}"),
        };
    }
    print(text.as_bytes())?;
    Ok(if results.iter().all(|(_, result)| result.is_ok()) { Exit::Success } else { Exit::Io })
}

/// Sends a test event to each target. Returns the name of each, and how it was accepted or why not.
async fn send(config: &Config) -> Vec<(String, Result<String, String>)> {
    let at_secs = clock::unix_secs(clock::now());
    let event = Event { at_secs, repository: String::new(), kind: EventKind::Test };
    let public_url = config.public_url.clone().unwrap_or_else(|| format!("http://{}", config.listen));
    let mut results = Vec::new();
    if let Some(target) = &config.notifications.webhook {
        let sent = match WebhookMessage::new(&event, &public_url) {
            Ok(message) => message.send(target, &SystemClock).await,
            Err(problem) => Err(problem),
        };
        let sent = sent.map(|status| format!(" with status {}", status.as_u16()));
        results.push((format!("webhook {}", target.shown_url()), sent));
    }
    if let Some(target) = &config.notifications.mail {
        let (subject, text) = describe(&[event], &public_url);
        let sent = Mail::new(subject, text).send(&target.to, target, &SystemClock).await;
        results.push((
            format!("mail to {} by {}", target.to, target.smtp),
            sent.map(|()| String::new()).map_err(|error| error.text),
        ));
    }
    results
}
