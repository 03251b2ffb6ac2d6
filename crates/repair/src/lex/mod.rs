//! The lowest layer of the engine: characters, names, lexemes and namespaces of XML.

pub(crate) mod doctype;
pub(crate) mod entities;
pub(crate) mod index;
pub(crate) mod known_namespaces;
pub(crate) mod lexeme;
pub(crate) mod lookahead;
pub(crate) mod name_characters;
pub(crate) mod names;
pub(crate) mod namespaces;
pub(crate) mod outline;
pub(crate) mod search;
pub(crate) mod simd;
pub(crate) mod text_fields;
pub(crate) mod window;
