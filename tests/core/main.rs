//! Tests of the engine and of the project itself. They need no feature of the program and also run
//! with `cargo test --no-default-features`.

#[path = "../support/mod.rs"]
mod support;

mod corpus;
mod cuts;
mod forgery;
mod hostile;
mod invariants;
mod judges;
mod layers;
mod limits;
mod mirror_simulation;
mod neighbours;
mod no_item_lost;
mod payload_content;
mod provenance;
mod recorded;
mod schedule_costs;
mod tidy;
mod version_one;
