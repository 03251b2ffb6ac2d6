//! How often a repository is listed for a dump of one position.

use crate::dump_error::DumpError;

/// Maximum number of lists of a dump. If the repository still changes then, a record of a whole dump that has changed
/// meanwhile can be in the next increment only.
const LISTS_MAX: u32 = 5;

/// The lists of a dump that is being written.
#[derive(Debug)]
pub struct ListRounds {
    selects: bool,
    lists: u32,
}

/// What follows a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextRound {
    /// Nothing: the dump is complete.
    Nothing,
    /// A list of what has changed meanwhile.
    Changes,
    /// The dump begins again, without the records so far.
    Restart,
}

impl ListRounds {
    /// No list so far. `selects`: the dump is of a set or a query, whose lists do not name the records that have left it.
    pub const fn new(selects: bool) -> Self {
        Self { selects, lists: 0 }
    }

    /// Counts a list. `is_current`: nothing has changed while it was read.
    ///
    /// # Errors
    ///
    /// [`DumpError::TooManyChanges`] if records may have left the set or the query during each list.
    pub const fn after_list(&mut self, is_current: bool) -> Result<NextRound, DumpError> {
        self.lists += 1;
        let is_last = self.lists >= LISTS_MAX;
        match (is_current, self.selects) {
            (true, _) => Ok(NextRound::Nothing),
            (false, true) if is_last => Err(DumpError::TooManyChanges),
            (false, true) => Ok(NextRound::Restart),
            (false, false) if is_last => Ok(NextRound::Nothing),
            (false, false) => Ok(NextRound::Changes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_of_a_set_begins_again_if_records_may_have_left_it() {
        let mut whole = ListRounds::new(false);
        let mut of_set = ListRounds::new(true);
        for _ in 1..LISTS_MAX {
            assert_eq!(whole.after_list(false).ok(), Some(NextRound::Changes));
            assert_eq!(of_set.after_list(false).ok(), Some(NextRound::Restart));
        }
        assert_eq!(whole.after_list(false).ok(), Some(NextRound::Nothing));
        assert!(matches!(of_set.after_list(false), Err(DumpError::TooManyChanges)));
        assert_eq!(ListRounds::new(true).after_list(true).ok(), Some(NextRound::Nothing));
    }
}
