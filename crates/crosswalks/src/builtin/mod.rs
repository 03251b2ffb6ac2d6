//! The functions of the built-in crosswalks, one file for each format. They write only what the record claims.
//! `links` needs other records too.

pub(crate) mod datacite;
pub(crate) mod didl;
pub(crate) mod dublin_core;
pub(crate) mod json_ld;
pub(crate) mod links;
pub(crate) mod mets;
pub(crate) mod mods;
mod wrapper;

#[cfg(test)]
mod tests;
