//! What every part of oaimend needs: the clock, errors that end a command, credentials and certificates.

pub mod certificate;
pub mod clock;
pub mod credentials;
pub mod error;
pub mod suggestions;
