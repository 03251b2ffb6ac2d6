//! The layout and the style of all pages for people, rendered on the server, without JavaScript.
//!
//! maud escapes every text and attribute. The pages need no script, inline style, image or font, as
//! [`CONTENT_SECURITY_POLICY`] requires.

mod fingerprint;
pub mod layout;
mod style_sheet;
mod texts;

pub use fingerprint::fingerprint;
pub use layout::{CONTENT_SECURITY_POLICY, Crumb, Page, Site};
pub use style_sheet::StyleSheet;
