//! `oaimend health`: asks the running server whether it lives, for health checks of containers.

use clap::Args;

use super::admin_client::AdminClient;
use super::data_arguments::DataArguments;
use super::exit::{Exit, Failure, print};

/// Asks the running server whether it responds; for health checks of containers and monitors
#[derive(Debug, Args)]
pub(crate) struct HealthArguments {
    /// Asks whether it accepts requests: a server that is about to stop does not
    #[arg(long)]
    ready: bool,
    #[command(flatten)]
    data: DataArguments,
}

pub(crate) fn run(arguments: HealthArguments) -> Result<Exit, Failure> {
    let config = arguments.data.load()?;
    let Some(address) = config.admin else {
        return Err(Failure::usage(
            "the admin listener is off, and only it answers; set admin.listen or --admin",
        ));
    };
    let page = if arguments.ready { "/-/readyz" } else { "/-/livez" };
    let response = AdminClient::new(address).send("GET", page)?;
    if response.status != 200 {
        let status = response.status;
        return Err(Failure::incomplete(format!(
            "{address}{page} responded with status {status}; its log says why"
        )));
    }
    print(b"ok\n")
}
