//! Style sheets, with paths that change with their content.

use crate::fingerprint::fingerprint;

/// A style sheet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StyleSheet {
    /// Its path below the public URL. No repository id begins with a hyphen.
    pub path: String,
    /// Its text.
    pub css: String,
}

impl StyleSheet {
    /// The style sheet of all pages.
    pub fn common() -> Self {
        Self::new("style", COMMON)
    }

    /// The style sheet of the operator.
    pub fn theme(css: &str) -> Self {
        Self::new("theme", css)
    }

    fn new(name: &str, css: &str) -> Self {
        Self { path: format!("/-/{name}-{}.css", fingerprint([css.as_bytes()])), css: css.to_owned() }
    }

    /// Whether this path is that of another version of the style sheet.
    pub fn is_other_version(&self, path: &str) -> bool {
        let name = |path: &str| {
            path.split_once('-').and_then(|(_, rest)| rest.split_once('-')).map(|(name, _)| name.to_owned())
        };
        path != self.path && name(path) == name(&self.path)
    }
}

/// The text of the style sheet of all pages.
const COMMON: &str = include_str!("style.css");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_style_sheet_is_small_and_loads_nothing() {
        assert!(COMMON.len() <= 14 << 10, "{} bytes", COMMON.len());
        for word in ["url(", "@import", "@font-face", "expression("] {
            assert!(!COMMON.contains(word), "{word}");
        }
    }

    #[test]
    fn the_path_changes_with_the_content() {
        let (one, other) = (StyleSheet::theme("a{}"), StyleSheet::theme("b{}"));
        assert_ne!(one.path, other.path);
        assert!(one.path.starts_with("/-/theme-") && one.path.ends_with(".css"), "{}", one.path);
        assert!(one.is_other_version(&other.path) && one.is_other_version("/-/theme-.css"));
        for path in [&one.path, &StyleSheet::common().path, "/-/theme.css", ""] {
            assert!(!one.is_other_version(path), "{path}");
        }
    }
}
