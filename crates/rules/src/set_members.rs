//! Whether the mirror knows the members of a set, and up to which time.

use super::ListState;

/// The facts of the mirror about the members of one set of a source.
///
/// A record of a source names its sets in its header, but OAI-PMH 1.x has no such element, and many 2.0 sources omit
/// it. Some name a part of their sets only. A list of a set that is read from the headers would then be short, or
/// `noRecordsMatch`, and look complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetFacts {
    /// Whether the header of any record names any set.
    pub headers_name_sets: bool,
    /// The result of requests to the source for the members of the set.
    pub members: KnownMembers,
}

/// The result of requests to a source for the members of one set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KnownMembers {
    /// Nothing: it was not asked.
    #[default]
    NotRequested,
    /// All members. The stored records name the set, as of this state of the mirror.
    All(ListState),
    /// Members that the stored records do not name, or not all of them.
    NotAll,
}

impl SetFacts {
    /// The state that a list of the set shows if the mirror answers; `None` if the mirror must not answer, because it
    /// could omit members. `collection` is the state of the mirror in the format of the list.
    ///
    /// Without an answer of the source, headers are believed if they name sets at all.
    ///
    /// ```
    /// use oaimend_oai::UnixSecs;
    /// use oaimend_rules::{ListState, SetFacts};
    ///
    /// let collection = ListState::new(UnixSecs(1_000));
    /// assert_eq!(SetFacts::default().state(collection), None, "an empty list could be wrong");
    /// let named = SetFacts { headers_name_sets: true, ..SetFacts::default() };
    /// assert_eq!(named.state(collection), Some(collection));
    /// ```
    pub fn state(&self, collection: ListState) -> Option<ListState> {
        match self.members {
            KnownMembers::All(listed) => Some(collection.continued_with(listed)),
            KnownMembers::NotAll => None,
            KnownMembers::NotRequested => self.headers_name_sets.then_some(collection),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_oai::UnixSecs;

    #[test]
    fn answer_of_the_source_counts_more_than_the_headers() {
        let collection = ListState::new(UnixSecs(1_000));
        for headers_name_sets in [false, true] {
            let of = |members| SetFacts { headers_name_sets, members }.state(collection);
            assert_eq!(of(KnownMembers::NotRequested), headers_name_sets.then_some(collection));
            assert_eq!(of(KnownMembers::NotAll), None);
            assert_eq!(
                of(KnownMembers::All(ListState::new(UnixSecs(900)))),
                Some(ListState::new(UnixSecs(900)))
            );
            assert_eq!(of(KnownMembers::All(ListState::new(UnixSecs(2_000)))), Some(collection));
        }
    }
}
