//! Tests of the program: its commands, its configuration and the proxy.

mod fixtures;
#[path = "../support/mod.rs"]
mod support;

mod browser;
mod check;
mod check_command;
mod check_schemas;
mod cli;
mod config;
mod config_access;
mod config_gateway;
mod config_mirror;
mod config_reference;
mod demo;
mod documentation;
mod failover;
mod failover_promise;
mod harvesters;
mod mirror_aggregate_changes;
mod mirror_circles;
mod mirror_cli;
mod mirror_collisions;
mod mirror_damage;
mod mirror_faults;
mod mirror_gaps;
mod mirror_harvest;
mod mirror_hostile;
mod mirror_provenance;
mod mirror_sets;
mod mirror_view;
mod notifications;
mod operator_commands;
mod plan;
mod provider_reports;
mod quarantine_cli;
mod repair_files;
mod report_page;
mod repository_events;
mod serve;
