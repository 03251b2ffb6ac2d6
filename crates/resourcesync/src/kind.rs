//! The kinds of lists of a format, and what they contain.

use oaimend_oai::named_enum;

named_enum! {
    /// A list of a format. Its name is the capability of ResourceSync, and the file name of its document.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum ListKind {
        /// All records that are not deleted (section 10).
        ResourceList = "resourcelist",
        /// The last change of each record, deletions included (section 12).
        ChangeList = "changelist",
        /// The content of a resource list as ZIP files (section 11).
        ResourceDump = "resourcedump",
        /// The content of a change list as ZIP files (section 13).
        ChangeDump = "changedump",
    }
}

impl ListKind {
    /// Whether it consists of changes, with deletions, instead of resources.
    pub const fn has_changes(self) -> bool {
        matches!(self, Self::ChangeList | Self::ChangeDump)
    }

    /// Whether its parts are ZIP files.
    pub const fn is_dump(self) -> bool {
        matches!(self, Self::ResourceDump | Self::ChangeDump)
    }

    /// The ending of the names of its parts.
    pub(crate) const fn part_ending(self) -> &'static str {
        if self.is_dump() { ".zip" } else { ".xml" }
    }

    /// The capability of the XML document in its parts: the list itself, or the manifest of a ZIP file.
    pub(crate) const fn part_capability(self) -> &'static str {
        match self {
            Self::ResourceList | Self::ChangeList => self.name(),
            Self::ResourceDump => "resourcedump-manifest",
            Self::ChangeDump => "changedump-manifest",
        }
    }
}
