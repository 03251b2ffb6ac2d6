//! Federations of sources in memory.

mod faults;
mod harvests;
mod lists;
mod source;
mod verbs;
mod world;
