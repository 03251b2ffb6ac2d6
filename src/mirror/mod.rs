//! The mirror: harvested copies of repositories, served while their sources are down.
//!
//! [`rules`] contains the decisions about time on which its promise depends.

pub mod rules;
