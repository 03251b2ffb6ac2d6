//! Destinations of ResourceSync that copy a mirror while its records change.

#![expect(clippy::expect_used, clippy::panic, reason = "a test may panic")]

mod copies;
mod destination;
mod failures;
mod world;
