//! The formats of a view, and whether their harvest was ever complete.

use super::options::MirroredSource;
use super::presentation::{View, ViewKind};
use super::response::{Answer, Page};
use oaimend_oai::{Argument, ErrorCode, Request, escape};
use oaimend_repository::Failure;
use oaimend_store::{Identifier, ListedFormat, MirrorError, Prefix, RecordStatus};
use std::collections::BTreeSet;

/// The mirrored formats of a repository, in the order of its source; none before the first harvest.
pub(crate) async fn formats_of(
    view: &View,
    member: &MirroredSource,
) -> Result<Vec<ListedFormat>, MirrorError> {
    let mut formats = view.stores.store.catalog(member.repository()).await?.formats;
    formats.retain(|format| member.prefixes.is_empty() || member.prefixes.contains(&format.prefix));
    Ok(formats)
}

/// The formats of a view. The first repository that has a format determines its schema and its namespace.
///
/// # Errors
///
/// No repository was harvested yet.
pub(crate) async fn formats(view: &View) -> Result<Vec<ListedFormat>, Failure> {
    let mut formats: Vec<ListedFormat> = Vec::new();
    for member in view.mirrored() {
        for format in formats_of(view, member).await? {
            if formats.iter().all(|known| known.prefix != format.prefix) {
                formats.push(format);
            }
        }
    }
    if formats.is_empty() { Err(view.incomplete("the formats", only_member(view))) } else { Ok(formats) }
}

/// The repository of a view of one.
pub(crate) fn only_member(view: &View) -> Option<&MirroredSource> {
    if matches!(view.kind, ViewKind::Single) { view.members.first() } else { None }
}

/// Whether a format of a repository was harvested completely at least once.
pub(crate) async fn is_complete(
    view: &View,
    member: &MirroredSource,
    prefix: &str,
) -> Result<bool, MirrorError> {
    let progress = view.stores.store.progress(member.repository(), Prefix(prefix)).await?;
    Ok(progress.last_complete.is_some())
}

/// Checks that an item which is not stored does not exist: no repository is still to be harvested.
///
/// # Errors
///
/// A repository of the view has the format, or may have it, and was never harvested completely. Harvesters delete
/// items that do not exist, so this must not be concluded from a part of the repository.
pub(crate) async fn check_all_complete(view: &View, prefix: Option<&str>) -> Result<(), Failure> {
    for member in view.mirrored() {
        let formats = formats_of(view, member).await?;
        if formats.is_empty() {
            return Err(view.incomplete("the formats", Some(member)));
        }
        for format in formats.iter().filter(|format| prefix.is_none_or(|prefix| prefix == format.prefix)) {
            if !is_complete(view, member, &format.prefix).await? {
                return Err(view.incomplete(&format.prefix, Some(member)));
            }
        }
    }
    Ok(())
}

/// Answers `ListMetadataFormats`.
pub(crate) async fn list_metadata_formats(view: &View, request: &Request) -> Result<Answer, Failure> {
    let now_secs = view.now_secs();
    let mut formats = formats(view).await?;
    if let Some(identifier) = request.argument(Argument::Identifier) {
        let (mut stored, mut live) = (false, BTreeSet::new());
        let of_view = view.members_of_view().is_some();
        if of_view {
            (stored, live) = formats_of_member(view, &formats, identifier).await?;
        }
        let members: &[MirroredSource] = if of_view { &[] } else { &view.members };
        for member in members {
            let of_item =
                view.stores.store.formats_of_item(member.repository(), Identifier(identifier)).await?;
            stored |= !of_item.is_empty();
            let has_metadata = |(prefix, status): &(String, RecordStatus)| {
                *status == RecordStatus::Live && !member.is_withdrawn_in(prefix)
            };
            live.extend(of_item.into_iter().filter(has_metadata).map(|(prefix, _)| prefix));
        }
        if !stored {
            check_all_complete(view, None).await?;
            let text = format!("the item {identifier} does not exist");
            return Ok(Answer::error(now_secs, ErrorCode::IdDoesNotExist, text));
        }
        formats.retain(|format| live.contains(&format.prefix));
    }
    if formats.is_empty() {
        let text = "the item is deleted in all formats";
        return Ok(Answer::error(now_secs, ErrorCode::NoMetadataFormats, text));
    }
    Ok(Answer::page(now_secs, formats_page(&formats)))
}

/// Whether an item is or was a member of a view, and the formats in which it is one.
pub(super) async fn formats_of_member(
    view: &View,
    formats: &[ListedFormat],
    identifier: &str,
) -> Result<(bool, BTreeSet<String>), Failure> {
    let (mut was_member, mut live) = (false, BTreeSet::new());
    let Some(membership) = view.members_of_view() else { return Ok((was_member, live)) };
    let identifiers = [identifier.to_owned()];
    for member in &view.members {
        for format in formats {
            let found = membership.find(member.repository(), Prefix(&format.prefix), &identifiers).await?;
            if let Some(found) = found.into_iter().flatten().next() {
                was_member = true;
                if !found.has_left {
                    live.insert(format.prefix.clone());
                }
            }
        }
    }
    Ok((was_member, live))
}

/// The list of these formats.
pub(crate) fn formats_page(formats: &[ListedFormat]) -> Page {
    let mut xml = String::new();
    for ListedFormat { prefix, schema, namespace } in formats {
        xml.push_str("    <metadataFormat>\n");
        for (name, value) in
            [("metadataPrefix", prefix), ("schema", schema), ("metadataNamespace", namespace)]
        {
            xml.push_str(&format!("      <{name}>"));
            escape(value, &mut xml);
            xml.push_str(&format!("</{name}>\n"));
        }
        xml.push_str("    </metadataFormat>\n");
    }
    Page { xml: xml.into(), items: formats.len() as u64, ..Page::default() }
}
