//! The options of all commands that read the configuration.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use oaimend::config::{Config, Flags};
use rustix::fs::Mode;

use super::admin_api::AdminApi;
use super::admin_client::AdminClient;
use super::exit::Failure;

use super::state::{IfAbsent, State};

/// The files of the configuration.
#[derive(Debug, Args)]
pub(super) struct ConfigArguments {
    /// The settings file [default: oaimend.toml, if it exists]
    #[arg(long, value_name = "FILE", global = true)]
    pub(super) config: Option<PathBuf>,
    /// Folder with one mapping file for each repository [default: mappings beside the settings file, if it exists]
    #[arg(long, value_name = "DIR", global = true)]
    pub(super) mappings: Option<PathBuf>,
}

/// The configuration, the data folder, and the server that may use it.
#[derive(Debug, Args)]
pub(super) struct DataArguments {
    #[command(flatten)]
    config: ConfigArguments,
    /// Folder for the mirror and other state [default: data]
    #[arg(long, value_name = "DIR", global = true)]
    data: Option<PathBuf>,
    /// Asks the running server with this admin listener, whatever the data folder contains [default: the listener of
    /// the server that uses the data folder, if there is one]
    #[arg(long, value_name = "ADDR", global = true, value_parser = parse_address)]
    admin: Option<SocketAddr>,
}

impl ConfigArguments {
    /// Reads the configuration.
    pub(super) fn load(self) -> Result<Config, Failure> {
        let Self { config, mappings } = self;
        Ok(Config::load(&Flags { config, mappings, ..Flags::default() })?)
    }
}

impl DataArguments {
    /// Reads the configuration.
    pub(super) fn load(self) -> Result<Config, Failure> {
        let Self { config: ConfigArguments { config, mappings }, data, admin } = self;
        let admin = admin.map(Some);
        Ok(Config::load(&Flags { config, mappings, data, admin, ..Flags::default() })?)
    }

    /// Reads the configuration, and opens the state. All files that the process creates from now on are private.
    ///
    /// # Errors
    ///
    /// Those of [`load`](Self::load) and of [`State::find`], or the data cannot be opened.
    pub(super) fn open(self, if_absent: IfAbsent) -> Result<AdminApi, Failure> {
        let (server, is_named) = (self.admin.map(AdminClient::new), self.data.is_some());
        let config = self.load()?;
        create_private_files();
        let state = State::find(&config, server, is_named, if_absent)?;
        AdminApi::open(config, state)
    }
}

/// Parses the address of a listener.
pub(super) fn parse_address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| "expected an IP address and a port such as 127.0.0.1:8080, not a name".to_owned())
}

/// Makes the files and folders that the process creates readable for its user only: the data folder contains tokens,
/// quarantined records and the key of the continuation tokens. Returns the mask of before, for [`create_files_as`].
pub(crate) fn create_private_files() -> Mode {
    rustix::process::umask(Mode::RWXG | Mode::RWXO)
}

/// Creates files with this mask again, such as those that the user names.
pub(super) fn create_files_as(mask: Mode) {
    rustix::process::umask(mask);
}
