//! `oaimend report`: prints the weekly report to the provider of a repository, and sends nothing.
//!
//! The command works on the data folder. While `oaimend serve` uses it, it works through its admin listener.

use std::io::{self, Write as _};
use std::path::Path;

use clap::Args;
use oaimend::config::{Config, Mapping};
use oaimend::provider_report::week_report;
use oaimend_base::clock;
use oaimend_store::Store;

use super::admin_client::AdminClient;
use super::data_arguments::DataArguments;
use super::exit::{Exit, Failure, describe_unknown_id, print};
use super::state::{IfAbsent, State};

/// Prints the weekly report to the provider of a repository, without sending it
#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// The id of the repository
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    data: DataArguments,
}

pub(crate) fn run(arguments: ReportArguments) -> Result<Exit, Failure> {
    let (config, state) = arguments.data.find(IfAbsent::ReadEmpty)?;
    let Some(mapping) = config.repositories.find(&arguments.id) else {
        return Err(Failure::usage(describe_unknown_id(&config, &arguments.id)));
    };
    let text = match state {
        State::Here(data) => {
            let (store, _empty) = data.open()?;
            report_here(&config, &mapping, store)?
        }
        State::InServer(client) => report_of_server(&client, mapping.id())?,
    };
    let Some(text) = text else {
        // A closed stderr is not an error: there is nothing to print.
        let _ =
            writeln!(io::stderr(), "oaimend: the last seven days of {} have nothing to report", mapping.id());
        return Ok(Exit::Success);
    };
    print(text.as_bytes())
}

/// The report from the data folder; `None` if there is nothing to report.
fn report_here(config: &Config, mapping: &Mapping, store: Store) -> Result<Option<String>, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(|error| Failure::io("start", Path::new("the threads"), &error))?;
    let now_secs = clock::unix_secs(clock::now());
    let public_url = config.public_url.clone().unwrap_or_else(|| format!("http://{}", config.listen));
    let docs_url = config.reports.docs_url.as_ref();
    let report = runtime.block_on(week_report(&store, mapping, now_secs, &public_url, docs_url));
    store.close();
    Ok(report.map_err(Failure::in_use)?.map(|report| report.text))
}

/// The report from the server that uses the data folder; `None` if there is nothing to report.
fn report_of_server(server: &AdminClient, id: &str) -> Result<Option<String>, Failure> {
    let response = server.send("GET", &format!("/-/repositories/{id}/report"))?;
    if response.status != 200 {
        let error = response.json["error"].as_str().unwrap_or("the response is not known");
        return Err(Failure::in_use(format!("the server does not report on {id}: {error}")));
    }
    Ok(response.json["text"].as_str().map(str::to_owned))
}
