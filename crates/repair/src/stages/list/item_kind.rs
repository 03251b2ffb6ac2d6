//! The start of an item in a list, including items in another form than the first one.
//!
//! The text between items is checked with it.
//!
//! An item can have another prefix than the list. A list of headers can contain records beside plain
//! headers. Each such item is read in its own form and written in the form of the list.

use crate::catalog::RepairId;
use crate::lex::names::{bytes_equal, name_span, split_name};
use crate::lex::window::TextWindow;
use crate::stages::list::state::List;
use crate::stages::response::{Response, StepResult};
use crate::validate::envelope_names::{EnvelopeNames, EnvelopePrefixes, TagMatch};
use crate::validate::schema::item_of;
use crate::validate::state::Validator;
use oaimend_oai::Verb;

/// Returns whether an item begins at the start of the window, and prepares the list to read it.
///
/// # Errors
/// `NeedMore` if the text ends too early to decide.
pub(crate) fn begins_list_item(
    response: &mut Response,
    list: &mut List,
    window: TextWindow<'_>,
) -> Result<bool, StepResult> {
    let rest = window.text;
    let body = rest.get(1..).unwrap_or_default();
    let name = body.get(..name_span(body)).unwrap_or_default();
    let single = matches!(list.verb(), Verb::GetRecord | Verb::Identify);
    if single && response.output.is_open() {
        return Ok(false);
    }
    let (prefix, local) = split_name(name);
    if is_other_item_kind(response, list, window, local)? {
        let headers_only = !list.names.headers_only;
        list.names.element =
            if headers_only { item_of(Verb::ListRecords) } else { item_of(Verb::ListIdentifiers) };
        list.names.headers_only = headers_only;
        list.set_slow();
        list.validator = Validator::new(list.names.clone(), list.context());
    }
    if !bytes_equal(local, list.names.element.name) {
        return Ok(false);
    }
    if bytes_equal(name.get(..name.len() - local.len()).unwrap_or_default(), response.root.prefix()) {
        return Ok(true);
    }
    if list.names.prefixes == EnvelopePrefixes::Kept || list.verb() == Verb::Identify {
        return Ok(false);
    }
    let Some(tag_end) = response.tag_end(window)? else { return Ok(false) };
    response.tags_mut().tidy();
    let tag = rest.get(..tag_end).unwrap_or_default();
    let is_oai = response.open_tag(tag, list.context()).is_ok_and(|tag| tag.oai);
    if is_oai {
        let colon: &[u8] = if prefix.is_empty() { b"" } else { b":" };
        list.names.other_prefix = Some([prefix, colon].concat());
    }
    Ok(is_oai)
}

/// Returns whether a list of headers in records continues with a plain header, or the reverse.
fn is_other_item_kind(
    response: &mut Response,
    list: &List,
    window: TextWindow<'_>,
    local: &[u8],
) -> Result<bool, StepResult> {
    let rest = window.text;
    // Metadata is never removed for a verb that only a header showed.
    let is_list = list.verb() == Verb::ListIdentifiers && !response.root.is_v1() && !list.is_concluded();
    if !is_list || response.is_off(RepairId::WrappedHeader) {
        return Ok(false);
    }
    match (local, list.names.headers_only) {
        (b"header", true) => Ok(true),
        (b"record", false) => {
            let record = EnvelopeNames { element: item_of(Verb::ListRecords), ..list.names.clone() };
            let bytes_max = response.limits().tag_bytes_max;
            let within = rest.get(..rest.len().min(bytes_max)).unwrap_or_default();
            match record.starts_item(within) {
                TagMatch::Cut if !window.is_last && rest.len() < bytes_max => Err(response.need_more(rest)),
                found => Ok(found == TagMatch::Yes),
            }
        }
        _ => Ok(false),
    }
}
