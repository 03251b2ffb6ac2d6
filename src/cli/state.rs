//! Where a command finds the state: in the data folder, or in the server that uses it.
//!
//! `--admin` names the server, whatever the data folder contains. Otherwise the server is asked if it has locked the
//! folder. A command that only reads creates no folder: where there is none, it reads an empty state.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use oaimend::config::Config;
use oaimend_files::DataDirLock;
use oaimend_store::Store;
use tempfile::TempDir;

use super::admin_client::AdminClient;
use super::exit::{Failure, print_message};

/// The state that a command uses.
pub(super) enum State {
    /// The data folder.
    Here(LockedData),
    /// A running server.
    InServer(AdminClient),
}

/// A data folder that is locked for this command.
pub(super) struct LockedData {
    lock: DataDirLock,
    /// The folder of an empty state, which is removed with it.
    empty: Option<TempDir>,
}

/// Whether a command creates a data folder if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IfAbsent {
    /// It writes.
    Create,
    /// It only reads.
    ReadEmpty,
    /// Without data it has nothing to do.
    Fail,
}

impl State {
    /// Finds the state. `server` is that of `--admin`, and `is_named` says whether `--data` names the folder.
    ///
    /// # Errors
    ///
    /// The folder belongs to another user, cannot be used, or is named and does not exist, or it is in use and the server
    /// has no admin listener.
    pub(super) fn find(
        config: &Config,
        server: Option<AdminClient>,
        is_named: bool,
        if_absent: IfAbsent,
    ) -> Result<Self, Failure> {
        if let Some(server) = server {
            return Ok(Self::InServer(server));
        }
        let data = &config.data;
        let refusal = foreign_owner(data).map(|owner| refuse(data, &owner));
        if !data.join("lock").exists() {
            match (if_absent, refusal) {
                (_, Some(refusal)) => return Err(refusal),
                (IfAbsent::ReadEmpty, None) => return empty(data, is_named).map(Self::Here),
                (IfAbsent::Fail, None) => return empty(data, true).map(Self::Here),
                (IfAbsent::Create, None) => {}
            }
            return Self::lock(config, None);
        }
        Self::lock(config, refusal)
    }

    /// Locks the folder, or finds the server that has locked it.
    fn lock(config: &Config, refusal: Option<Failure>) -> Result<Self, Failure> {
        match (DataDirLock::take(&config.data), refusal) {
            (Ok(None), _) => Ok(Self::InServer(AdminClient::of_server(config)?)),
            (_, Some(refusal)) => Err(refusal),
            (Ok(Some(lock)), None) => Ok(Self::Here(LockedData { lock, empty: None })),
            (Err(error), None) => Err(error.into()),
        }
    }
}

impl LockedData {
    /// Opens the stores. The folder of an empty state must outlive them.
    pub(super) fn open(self) -> Result<(Store, Option<TempDir>), Failure> {
        Ok((oaimend_store_local::open_locked(self.lock)?, self.empty))
    }
}

/// An empty state in place of a folder that does not exist.
fn empty(data: &Path, is_named: bool) -> Result<LockedData, Failure> {
    report_absence(data, is_named, ", and --admin a running server")?;
    let folder = tempfile::tempdir();
    let folder = folder.map_err(|error| Failure::io("write to", &std::env::temp_dir(), &error))?;
    let lock = DataDirLock::take(folder.path())?;
    let lock = lock.ok_or_else(|| Failure::in_use("another process has locked a new folder"))?;
    Ok(LockedData { lock, empty: Some(folder) })
}

/// Checks that there is a data folder, for a command that only reads files in it and needs no server.
///
/// # Errors
///
/// There is none, and the command needs it: `is_needed`. Otherwise the absence is only reported.
pub(super) fn check_data_exist(data: &Path, is_needed: bool) -> Result<(), Failure> {
    if data.exists() { Ok(()) } else { report_absence(data, is_needed, "") }
}

/// Reports that there is no data. `others` are further places to name.
fn report_absence(data: &Path, is_needed: bool, others: &str) -> Result<(), Failure> {
    let text = format!("there is no data of oaimend in the folder {}", data.display());
    if is_needed {
        return Err(Failure::in_use(format!("{text}; name its folder with --data")));
    }
    print_message(format!("{text}; --data names another one{others}"));
    Ok(())
}

/// The user to whom the data folder belongs, if files of this process would not be his: for root, files of its own that
/// the service cannot read; for others, a folder in which the service cannot be.
///
/// A volume can belong to another user than the service, which then owns the lock.
pub(super) fn foreign_owner(data: &Path) -> Option<Owner> {
    let owners: Vec<u32> = [data.to_owned(), data.join("lock")]
        .iter()
        .filter_map(|path| fs::metadata(path).ok())
        .map(|about| about.uid())
        .collect();
    let user = rustix::process::geteuid().as_raw();
    let foreign = owners.iter().rev().copied().find(|owner| *owner != user)?;
    let is_foreign = user == 0 || !owners.contains(&user);
    is_foreign.then(|| Owner { uid: foreign, name: name_of(foreign) })
}

/// A user of the system.
pub(super) struct Owner {
    uid: u32,
    name: Option<String>,
}

impl Owner {
    /// The message about a data folder of another user, with the way to run the command.
    pub(super) fn explain(&self, data: &Path) -> String {
        let process_user = rustix::process::geteuid().as_raw();
        let describe = |uid: u32| name_of(uid).unwrap_or_else(|| format!("the user {uid}"));
        // sudo takes a number after #, which shells need in quotes.
        let user = self.name.clone().unwrap_or_else(|| format!("'#{}'", self.uid));
        format!(
            "the data folder {} belongs to {}, and files of {} in it would stop the service; run: sudo -u {user} oaimend ...",
            data.display(),
            describe(self.uid),
            describe(process_user),
        )
    }
}

fn refuse(data: &Path, owner: &Owner) -> Failure {
    Failure::in_use(owner.explain(data))
}

/// The name of a user in `/etc/passwd`. Users of other directories are named by number.
fn name_of(uid: u32) -> Option<String> {
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let named = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _, number) = (fields.next()?, fields.next()?, fields.next()?);
        (number.parse() == Ok(uid)).then(|| name.to_owned())
    });
    named.filter(|name| !name.is_empty())
}
