//! Fingerprints of contents, in URLs and entity tags.

use blake2::{Blake2s256, Digest};

/// A fingerprint of some parts, 16 hexadecimal digits. Other parts, or parts with other borders, have another one.
pub fn fingerprint<'p>(parts: impl IntoIterator<Item = &'p [u8]>) -> String {
    let mut hasher = Blake2s256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    hex::encode(&hasher.finalize()[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borders_of_parts_count() {
        let of = |parts: &[&'static str]| fingerprint(parts.iter().map(|part| part.as_bytes()));
        assert_eq!(of(&["ab", "c"]), of(&["ab", "c"]));
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_ne!(of(&["ab"]), of(&["ab", ""]));
        assert_eq!(of(&["ab"]).len(), 16);
    }
}
