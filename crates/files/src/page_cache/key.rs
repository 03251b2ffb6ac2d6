//! The key of a page, and the file name that follows from it.

use blake2::{Blake2s256, Digest};
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::sync::Arc;

/// Length of the hash in a file name, in bytes.
const NAME_BYTES: usize = 16;

/// Identifies a response. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PageKey(Arc<Keyed>);

#[derive(Debug, PartialEq, Eq)]
struct Keyed {
    name: Name,
    text: String,
}

impl Hash for Keyed {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash.hash(state);
    }
}

impl PageKey {
    /// `repository` is its id: letters, digits, `.`, `_` and `-`, also the name of its folder; `text`
    /// everything else that the response depends on.
    pub fn new(repository: &str, text: String) -> Self {
        let hash: [u8; 32] = Blake2s256::digest(framed(repository, &text)).into();
        let hash = *hash.first_chunk().unwrap_or(&[0; NAME_BYTES]);
        Self(Arc::new(Keyed { name: Name { repository: repository.into(), hash }, text }))
    }

    /// Id of the repository.
    pub fn repository(&self) -> &str {
        &self.0.name.repository
    }

    /// Everything else that the response depends on.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// A hash of the whole key.
    pub fn hash(&self) -> [u8; NAME_BYTES] {
        self.name().hash
    }

    pub(super) fn framed(&self) -> Vec<u8> {
        framed(self.repository(), self.text())
    }

    pub(super) fn name(&self) -> &Name {
        &self.0.name
    }
}

fn framed(repository: &str, text: &str) -> Vec<u8> {
    [repository.as_bytes(), b"\n", text.as_bytes()].concat()
}

/// The folder and the file name of a page.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Name {
    pub(super) repository: Arc<str>,
    hash: [u8; NAME_BYTES],
}

impl Name {
    pub(super) fn file(&self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.hash))
    }
}

/// The page of a path, judged by its name alone.
pub(super) fn name_of(path: &Path) -> Option<Name> {
    let file = path.file_name()?.to_str()?;
    let repository = path.parent()?.file_name()?.to_str()?;
    let hash = u128::from_str_radix(file, 16).ok()?;
    let name = Name { repository: repository.into(), hash: hash.to_be_bytes() };
    // Not every hexadecimal number is the name of a page.
    (name.file() == file).then_some(name)
}
