//! Whether the mirror knows the members of the sets that a view is limited to.
//!
//! A harvest asks the source for the members of its sets after the records, unless their headers name them. A generation
//! that is judged before would be empty, or have some of the members only, and look complete.

use super::definition::{DefinedSource, Definition};
use oaimend_mirror::view::sets::KnownSets;
use oaimend_repository::Failure;
use oaimend_store::{MirrorStore, Prefix, RepositoryId};

/// Checks that the members of the sets of a view are known. Commits that are judged afterwards name them.
///
/// A repository that was never harvested completely does not hold the others up: its members enter the view later.
///
/// # Errors
///
/// They are not known in a repository that was harvested, or in none at all; or the store cannot be read.
pub(super) async fn check_known(mirror: &dyn MirrorStore, definition: &Definition) -> Result<(), Failure> {
    let mut is_any_known = false;
    let mut not_harvested = None;
    for (source, set) in definition.sets_of_sources() {
        let id = source.id.as_str();
        for prefix in prefixes(mirror, source).await? {
            let checked = KnownSets::read(mirror, id, &prefix).await?.check(id, set);
            let progress = mirror.progress(RepositoryId(id), Prefix(&prefix)).await?;
            match checked {
                Ok(()) => is_any_known = true,
                Err(failure) if progress.last_complete.is_some() => return Err(failure),
                Err(failure) => not_harvested = Some(failure),
            }
        }
    }
    match not_harvested {
        Some(failure) if !is_any_known => Err(failure),
        _ => Ok(()),
    }
}

/// The formats that a view follows in a repository.
async fn prefixes(mirror: &dyn MirrorStore, source: &DefinedSource) -> Result<Vec<String>, Failure> {
    let formats = mirror.catalog(RepositoryId(&source.id)).await?.formats;
    let prefixes = formats.into_iter().map(|format| format.prefix);
    Ok(prefixes.filter(|prefix| source.prefixes.is_empty() || source.prefixes.contains(prefix)).collect())
}
