//! One request of a harvester: a stream of events over as many exchanges as it takes.

pub(crate) mod continuation_token;
pub(crate) mod detached_task;
pub(crate) mod list_position;
pub(crate) mod list_session;
pub(crate) mod outage;
pub(crate) mod quarantine;
pub(crate) mod recovery;
