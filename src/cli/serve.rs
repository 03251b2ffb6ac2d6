//! `oaimend serve`: runs the proxy.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use oaimend::config::{Config, Flags};
use oaimend::log;
use oaimend::serve::{EarlySignals, Server};

use super::data_arguments::{create_private_files, parse_address};
use super::exit::{Exit, Failure};

/// Runs the proxy: repairs the responses of repositories live
#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// The settings file [default: oaimend.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The address for harvesters [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR", value_parser = parse_address)]
    listen: Option<SocketAddr>,
    /// The public URL in responses [default: https:// and the address of listen_tls, or http:// and the listen address]
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// Folder with one mapping file for each repository [default: mappings beside the settings file, if it exists]
    #[arg(long, value_name = "DIR")]
    mappings: Option<PathBuf>,
    /// A repository without a mapping file: its id and the base URL of its source
    #[arg(long, value_name = "ID=URL", value_parser = parse_map)]
    map: Vec<(String, String)>,
    /// Folder for the cache, the quarantine and other state [default: data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The address of the admin listener, or off [default: 127.0.0.1:8081]
    #[arg(long, value_name = "ADDR|off", value_parser = parse_admin)]
    admin: Option<Admin>,
    /// Takes over from the running oaimend with the same data folder, which must then receive
    /// SIGQUIT
    #[arg(long)]
    upgrade: bool,
}

/// The address of the admin listener; `None` for `off`.
#[derive(Clone, Copy, Debug)]
struct Admin(Option<SocketAddr>);

pub(crate) fn run(arguments: ServeArguments) -> Result<Exit, Failure> {
    let _log = log::log_to_stderr()?;
    let mut early_signals = EarlySignals::watch();
    let mut is_quit = || early_signals.as_mut().is_some_and(EarlySignals::is_quit);
    create_private_files();
    let config = Config::load(&Flags {
        config: arguments.config,
        listen: arguments.listen,
        public_url: arguments.public_url,
        mappings: arguments.mappings,
        maps: arguments.map,
        data: arguments.data,
        admin: arguments.admin.map(|admin| admin.0),
    })?;
    if is_quit() {
        return Ok(end_start());
    }
    let server = if arguments.upgrade { Server::take_over(config)? } else { Server::bind(config)? };
    // A process that has taken over must serve: the other one has ended.
    if !arguments.upgrade && is_quit() {
        return Ok(end_start());
    }
    server.run_until_signal();
    Ok(Exit::Success)
}

/// Ends a start at SIGQUIT: there is nothing to hand over yet.
fn end_start() -> Exit {
    tracing::info!("SIGQUIT ended this process before it served");
    Exit::Success
}

fn parse_map(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((id, url)) => Ok((id.to_owned(), url.to_owned())),
        None => Err("expected ID=URL, such as --map zenodo=https://zenodo.org/oai2d".to_owned()),
    }
}

fn parse_admin(text: &str) -> Result<Admin, String> {
    if text == "off" {
        return Ok(Admin(None));
    }
    parse_address(text).map(|address| Admin(Some(address))).map_err(|problem| format!("{problem}; or off"))
}
