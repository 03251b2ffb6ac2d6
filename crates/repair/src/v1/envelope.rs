//! Detection of OAI-PMH 1.0 and 1.1, and the conversion of the root to 2.0.
//!
//! There is no separate pass for 1.x. The stages read such a response directly and call this module where
//! the versions differ. [`items`](crate::v1::items) converts the items.
//!
//! In 1.x the root has the name of the verb, and `requestURL` is the request. The items follow the head,
//! and the root's end tag ends the list.

use crate::catalog::RepairId;
use crate::lex::names::{split_name, trim};
use crate::lex::namespaces::{OAI, XSI};
use crate::passes::lenient_tag::{LenientAttribute, LenientTag};
use crate::text::edits::Edits;
use crate::v1::items::{UpgradedTags, is_old_xsi};
use oaimend_oai::Verb;

/// The facts of a response of OAI-PMH 1.x.
#[derive(Debug)]
pub(crate) struct V1Response {
    /// `"1.0"` or `"1.1"`.
    pub(crate) version: &'static str,
    pub(crate) verb: Verb,
    /// Whether the request asked for oai_dc, which every record must support.
    pub(crate) asks_for_dc: bool,
    pub(crate) payload_tags: UpgradedTags,
}

/// The schemaLocation of a root in 2.0.
pub(crate) const LOCATION: &[u8] =
    b"http://www.openarchives.org/OAI/2.0/ http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd";

/// Returns the version that a root's namespace identifies.
fn version_of(uri: &[u8]) -> Option<&'static str> {
    let lower = uri.to_ascii_lowercase();
    let rest = lower.strip_prefix(b"http://www.openarchives.org/oai/1.")?;
    let (version, verb) = match rest {
        [b'0', verb @ ..] => ("1.0", verb),
        [b'1', verb @ ..] => ("1.1", verb),
        _ => return None,
    };
    let verb = verb.strip_prefix(b"/oai_")?;
    let is_verb = Verb::ALL.iter().any(|other| other.as_bytes().eq_ignore_ascii_case(verb));
    is_verb.then_some(version)
}

/// Returns whether a response in this namespace is of 1.x.
pub(crate) fn is_v1(uri: &[u8]) -> bool {
    version_of(uri).is_some()
}

/// Returns the 2.0 namespace for a namespace on the root.
pub(crate) fn root_namespace(uri: &[u8]) -> Option<&'static [u8]> {
    if is_v1(uri) {
        return Some(OAI);
    }
    is_old_xsi(uri).then_some(XSI)
}

/// Replaces the root's schemaLocation by that of 2.0.
pub(crate) fn replace_root_location(attribute: &LenientAttribute, edits: &mut Edits) {
    if attribute.value != LOCATION {
        attribute.set(RepairId::V1Root, LOCATION, edits);
    }
}

impl V1Response {
    /// Reads the root of a response of 1.x; `None` if the tag is another one.
    pub(crate) fn from_root(text: &[u8], at: usize, tag: &LenientTag) -> Option<Self> {
        let (prefix, local) = split_name(text.get(at + 1..tag.name_end)?);
        let verb = Verb::from_bytes(local)?;
        let name_start: &[u8] = if prefix.is_empty() { b"xmlns" } else { b"xmlns:" };
        let declaration = [name_start, prefix].concat();
        let declares = |attribute: &&LenientAttribute| {
            text.get(attribute.name.0..attribute.name.1) == Some(declaration.as_slice())
        };
        let version = version_of(trim(&tag.attributes.iter().find(declares)?.value))?;
        Some(Self { version, verb, asks_for_dc: false, payload_tags: UpgradedTags::default() })
    }
}
