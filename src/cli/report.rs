//! `oaimend report`: prints the weekly report to the provider of a repository, and sends nothing.

use clap::Args;
use serde::Deserialize;

use super::data_arguments::DataArguments;
use super::exit::{Exit, Failure, print, print_message};
use super::state::IfAbsent;

/// Prints the weekly report to the provider of a repository, without sending it
#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// The id of the repository
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    data: DataArguments,
}

#[derive(Deserialize)]
struct Report {
    /// `None` if there is nothing to report.
    text: Option<String>,
}

pub(crate) fn run(arguments: ReportArguments) -> Result<Exit, Failure> {
    let ReportArguments { id, data } = arguments;
    let api = data.open(IfAbsent::ReadEmpty)?;
    api.check_id(&id)?;
    let report = api.send("GET", &format!("/-/repositories/{id}/report"))?.map_err(|refusal| {
        Failure::in_use(format_args!("the server does not report on {id}: {}", refusal.error))
    })?;
    match report.read::<Report>()?.text {
        Some(text) => print(text.as_bytes()),
        None => {
            print_message(format_args!("the last seven days of {id} have nothing to report"));
            Ok(Exit::Success)
        }
    }
}
