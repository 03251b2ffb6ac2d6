//! `oaimend validate`: reports the faults of the configuration.

use std::io::{self, Write as _};
use std::path::Path;

use clap::{Args, ValueEnum};
use oaimend::config::{federation_schema, mapping_schema, settings_schema, view_schema};
use oaimend_base::certificate::CertificateFiles;
use oaimend_base::clock;
use oaimend_base::error::{Error, Fault};
use oaimend_full_text::{PDFTOTEXT, find_program};
use oaimend_upstream::{Endpoint, SourceClient};

use super::data_arguments::ConfigArguments;
use super::exit::{Exit, Failure, print};

/// Reads the configuration and reports each fault with its file and line
#[derive(Debug, Args)]
pub(crate) struct ValidateArguments {
    #[command(flatten)]
    config: ConfigArguments,
    /// Prints a JSON Schema instead, with which editors check keys: of oaimend.toml, of a mapping file, or
    /// of the file of a view or a federation
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "settings")]
    schema: Option<SchemaOf>,
}

/// The kinds of configuration files.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum SchemaOf {
    /// oaimend.toml
    Settings,
    /// The file of a repository
    Mapping,
    /// The file of a view
    View,
    /// The file of a federation
    Federation,
}

pub(crate) fn run(arguments: ValidateArguments) -> Result<Exit, Failure> {
    match arguments.schema {
        Some(SchemaOf::Settings) => return print(format!("{:#}\n", settings_schema()).as_bytes()),
        Some(SchemaOf::Mapping) => return print(format!("{:#}\n", mapping_schema()).as_bytes()),
        Some(SchemaOf::View) => return print(format!("{:#}\n", view_schema()).as_bytes()),
        Some(SchemaOf::Federation) => return print(format!("{:#}\n", federation_schema()).as_bytes()),
        None => {}
    }
    let config = arguments.config.load()?;
    let repositories = config.repositories.all();
    for mapping in repositories.values() {
        SourceClient::new(&mapping.source).map_err(|failure| {
            let folder = config.repositories.folder().unwrap_or(Path::new(""));
            let file = folder.join(mapping.id()).with_added_extension("toml");
            Error::Config(vec![Fault { file, line: 1, text: failure.details_for_operators() }])
        })?;
    }
    let of_sources =
        repositories.values().filter_map(|mapping| mapping.source.access.tls.client_certificate.as_ref());
    for files in config.listen_tls.iter().map(|tls| &tls.files).chain(of_sources) {
        warn_of_expiry(files);
    }
    if let Some(webhook) = &config.notifications.webhook {
        Endpoint::new(&webhook.url, webhook.ca_file.as_deref()).map_err(|problem| {
            let file = webhook.ca_file.clone().unwrap_or_default();
            Error::Config(vec![Fault { file, line: 1, text: format!("notifications.webhook: {problem}") }])
        })?;
    }
    let count = repositories.len();
    let noun = if count == 1 { "repository" } else { "repositories" };
    for file in config.repositories.unread_files() {
        // A closed stderr is not an error: the configuration has no fault.
        let _ = writeln!(
            io::stderr(),
            "{}:1: warning: this file is not read; the name of a mapping file ends with .toml",
            file.display()
        );
    }
    let warnings = config.views.warnings(&repositories).into_iter();
    for Fault { file, line, text } in warnings.chain(config.federations.warnings(&repositories)) {
        // A closed stderr is not an error: the configuration has no fault.
        let _ = writeln!(io::stderr(), "{}:{line}: warning: {text}", file.display());
    }
    if repositories.values().any(|mapping| mapping.full_texts.is_some()) && find_program(PDFTOTEXT).is_none()
    {
        let text =
            "full texts are not fetched, because the program pdftotext is missing; install poppler-utils";
        // A closed stderr is not an error: the configuration has no fault.
        let _ = writeln!(io::stderr(), "oaimend: warning: {text}");
    }
    match config.repositories.folder().filter(|folder| folder.exists()) {
        Some(folder) => print(format!("no faults; {count} {noun} in {}\n", folder.display()).as_bytes()),
        None => {
            // A closed stderr is not an error: the result is printed.
            let _ = writeln!(
                io::stderr(),
                "oaimend: there is no folder of mapping files; create \"mappings\" beside oaimend.toml, or name one with \
                 --mappings"
            );
            print(format!("no faults; {count} {noun}\n").as_bytes())
        }
    }
}

/// Prints a warning about a certificate that has expired or expires soon. It is not a fault: the server starts with it.
fn warn_of_expiry(files: &CertificateFiles) {
    let loaded = files.load().ok();
    if let Some(text) = loaded.and_then(|certificate| certificate.expiry_warning(clock::now())) {
        let (file, line) = (files.certificate.display(), files.first_line());
        // A closed stderr is not an error: the configuration has no fault.
        let _ = writeln!(io::stderr(), "{file}:{line}: warning: {text}");
    }
}
