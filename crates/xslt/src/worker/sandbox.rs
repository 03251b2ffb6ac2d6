//! Gives up the rights of the process.

use landlock::{ABI, Access as _, AccessFs, AccessNet, Ruleset, RulesetAttr as _, RulesetStatus, Scope};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::io;
use std::time::Duration;

/// The features of the kernel that are used. A newer number needs no change here: all rights of this one are given up.
const LANDLOCK: ABI = ABI::V6;

/// Gives up all rights but to compute, and to read and write the open pipes. The process gets at most `memory_bytes` more
/// memory than it has. Returns whether Landlock is in force, which not every kernel has. The limits hold in any case.
///
/// The error says what failed.
pub(super) fn give_up_rights(memory_bytes: u64) -> Result<bool, String> {
    let limit =
        |name: &'static str| move |error: io::Error| format!("the worker cannot limit its {name}: {error}");
    let size = address_space().map_err(limit("memory"))?;
    let has_landlock = restrict().unwrap_or(false);
    for (resource, maximum, name) in [
        (Resource::Core, 0, "memory dumps"),
        (Resource::Fsize, 0, "files"),
        (Resource::Nproc, 0, "processes"),
        (Resource::As, size.saturating_add(memory_bytes), "memory"),
        // Open pipes stay open. No file and no connection can be opened, whatever the user of the process may do.
        (Resource::Nofile, 0, "open files"),
    ] {
        let rlimit = Rlimit { current: Some(maximum), maximum: Some(maximum) };
        setrlimit(resource, rlimit).map_err(|error| limit(name)(error.into()))?;
    }
    match File::open("/") {
        Ok(_) => Err("the worker can still open files, so it does not run sheets".to_owned()),
        Err(_) => Ok(has_landlock),
    }
}

/// Denies all access to files, the network and other processes. Returns whether the kernel knows all of it.
fn restrict() -> Result<bool, landlock::RulesetError> {
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(LANDLOCK))?
        .handle_access(AccessNet::from_all(LANDLOCK))?
        .scope(Scope::from_all(LANDLOCK))?
        .create()?
        .restrict_self()?;
    Ok(status.ruleset == RulesetStatus::FullyEnforced)
}

/// The address space of the process in bytes.
fn address_space() -> io::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
    let kib = size.and_then(|size| size.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.map(|kib| kib << 10).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Lets the kernel end the process if it computes for `time` from now on. oaimend measures the time too and ends it
/// first, unless oaimend is gone or too busy.
pub(super) fn limit_processor_time(time: Duration) -> io::Result<()> {
    let used = u64::try_from(clock_gettime(ClockId::ProcessCPUTime).tv_sec).unwrap_or_default();
    // Whole seconds, and the first one may be over already.
    let current = Some(used + time.as_secs() + 2);
    let Rlimit { maximum, .. } = getrlimit(Resource::Cpu);
    Ok(setrlimit(Resource::Cpu, Rlimit { current, maximum })?)
}
