//! The texts of the pages, by page. A second language is another version of this folder.
//!
//! Names in protocols, such as verbs, keys of JSON and elements of feeds, are no texts and stay with the code that writes
//! them. The layout of all pages has its texts in the crate `html`, because the reports of `check` have it too.

#![expect(missing_docs, reason = "a text says itself what it is")]

pub mod common;
pub(crate) mod failures;
pub(crate) mod list_notices;
pub(crate) mod lists;
pub(crate) mod numbers;
pub mod openurl;
pub mod operator;
pub mod plain;
pub(crate) mod record;
pub(crate) mod record_notices;
pub mod related;
pub(crate) mod repository;
pub mod resolver;
pub(crate) mod response;
pub mod search;
pub(crate) mod sets;
pub mod start;
