//! `oaimend serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use oaimend::config::{Config, Flags};
use oaimend::log;
use oaimend::server::Server;

use super::exit::{Exit, Failure};

/// Stands in front of repositories and mends what they send, live
#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// The configuration [default: oaimend.toml, if there is one]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where harvesters are answered [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// What answers say of themselves [default: http:// and the listen address]
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// Folder with one file a repository [default: mappings, if there is one]
    #[arg(long, value_name = "DIR")]
    mappings: Option<PathBuf>,
    /// A repository without a file: its id and the base URL of its source
    #[arg(long, value_name = "ID=URL", value_parser = map)]
    map: Vec<(String, String)>,
    /// Folder of the quarantine and other state [default: data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where operators are answered, or off [default: 127.0.0.1:8081]
    #[arg(long, value_name = "ADDR|off", value_parser = admin)]
    admin: Option<Admin>,
    /// Take over from the oaimend that runs on the same data folder, once it is sent SIGQUIT
    #[arg(long)]
    upgrade: bool,
}

/// Where operators are answered, or nowhere.
#[derive(Clone, Copy, Debug)]
struct Admin(Option<SocketAddr>);

pub(crate) fn run(arguments: ServeArguments) -> Result<Exit, Failure> {
    let _log = log::log_to_stderr();
    let config = Config::load(&Flags {
        config: arguments.config,
        listen: arguments.listen,
        public_url: arguments.public_url,
        mappings: arguments.mappings,
        maps: arguments.map,
        data: arguments.data,
        admin: arguments.admin.map(|admin| admin.0),
    })?;
    let server = if arguments.upgrade { Server::take_over(config)? } else { Server::bind(config)? };
    server.run_until_signal();
    Ok(Exit::Success)
}

fn map(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((id, url)) => Ok((id.to_owned(), url.to_owned())),
        None => Err("ID=URL is right, like --map zenodo=https://zenodo.org/oai2d".to_owned()),
    }
}

fn admin(text: &str) -> Result<Admin, String> {
    if text == "off" {
        return Ok(Admin(None));
    }
    let address = text.parse().map_err(|_| "an address like 127.0.0.1:8081, or off, is right".to_owned())?;
    Ok(Admin(Some(address)))
}
