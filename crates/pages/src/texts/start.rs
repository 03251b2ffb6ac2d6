//! The texts of the start page of a server without a gateway.

pub const UNKNOWN_TITLE: &str = "No such page";
pub const UNKNOWN: &str = "This server has these repositories:";
pub const INTRODUCTION: &str = "A repair proxy for OAI-PMH. Point a harvester at one of these base URLs; it gets the records \
    of the source, whole and valid.";
pub const NONE: &str =
    "There is no repository yet. Put a file into the mappings folder, or start with --map ID=URL.";
/// Before the link to the list of repositories as XML.
pub const FOR_PROGRAMS: &str = "For programs: ";
