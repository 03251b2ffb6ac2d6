//! Why a record cannot be converted.

use oaimend_oai::named_enum;

named_enum! {
    /// Why a record cannot be converted: the reason of its quarantine.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Unconverted {
        /// The record is no record element with metadata, or its metadata cannot be read.
        Unreadable = "crosswalk-unreadable",
        /// The metadata has more elements or longer texts than a conversion keeps.
        TooLong = "crosswalk-limit",
        /// The metadata contains nothing that the crosswalk reads.
        NothingRead = "crosswalk-nothing-read",
        /// The sheet of the operator fails for the record.
        SheetFailed = "crosswalk-sheet-failed",
    }
}
