//! Federations of sources in memory.

mod faults;
mod harvests;
mod lists;
mod verbs;
mod world;
