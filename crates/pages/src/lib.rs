//! Pages for people and crawlers, made from the mirror and from responses.
//!
//! [`route`] reads what a request names. [`record`] reads a stored record and derives what its page says. [`repository`] is what the overview and the pages of repositories contain. [`list`] divides
//! the records into lists, [`search`] contains what a search found, [`resolver`] what is known of an identifier, [`sitemap`] writes sitemaps, and [`oai_page`] reads an OAI-PMH response. [`html`] renders pages.
//! None of them reads the store or the network: the caller passes the XML and receives text. Everything in a record is
//! untrusted.

pub mod html;
pub mod list;
pub mod oai_page;
pub mod record;
mod record_form;
pub mod repository;
pub mod resolver;
pub mod route;
pub mod search;
pub mod sitemap;
pub mod texts;

pub use record_form::RecordForm;
