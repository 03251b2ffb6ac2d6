//! Destinations of ResourceSync that copy a mirror while its records change.

mod copies;
mod destination;
mod failures;
mod world;
