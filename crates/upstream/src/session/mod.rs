//! One request of a harvester: a stream of events over as many exchanges as necessary.

mod carry_out;
mod decision;
mod delivery;
mod emit;
mod end_of_list;
mod identify_from_mapping;
mod list_position;
pub(crate) mod list_session;
mod outage;
mod outcome;
mod page_fallback;
mod progress;
mod restart;
pub(crate) mod token_origin;
