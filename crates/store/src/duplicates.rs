//! The choice between records of one source that have the same identifier, and what a harvest remembers of them.
//!
//! An identifier of OAI-PMH names one item (2.0, section 2.4), but some sources list it for several. The *content* of a
//! listed record is its status and everything after its header. Two records with the same identifier and the same
//! content are a repetition, such as from pages that overlap, and two with different contents are duplicates.

use oaimend_oai::{UnixSecs, named_enum, serde_by_name};
use serde::{Deserialize, Serialize};

named_enum! {
    /// Which records the mirror stores if a list of the source contains an identifier with different contents
    /// (ODL-Filter in Suleman and Fox, "Beyond Harvesting: Digital Library Components as OAI Extensions").
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Duplicates {
        /// The first one in the lists of each harvest.
        First = "first",
        /// The one with the latest datestamp.
        #[default]
        Newest = "newest",
        /// All of them: from the second one on as `identifier#2`, `identifier#3` and so on.
        Suffix = "suffix",
    }
}

serde_by_name!(Duplicates);

impl Duplicates {
    /// Whether each harvest must list all records: a list of changes does not show how many records the source has
    /// with an identifier, nor which of them comes first.
    pub const fn needs_whole_lists(self) -> bool {
        match self {
            Self::First | Self::Suffix => true,
            Self::Newest => false,
        }
    }
}

/// Maximum number of contents that are remembered of one identifier, at about 12 bytes each.
pub const OCCURRENCES_MAX: usize = 100;

/// The number of records in the lists of a harvest whose identifier came before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DuplicateCounts {
    /// Those with another content.
    pub duplicates: u64,
    /// Those with the same content.
    pub repetitions: u64,
}

impl DuplicateCounts {
    /// Adds other numbers.
    pub const fn add(&mut self, other: Self) {
        self.duplicates = self.duplicates.saturating_add(other.duplicates);
        self.repetitions = self.repetitions.saturating_add(other.repetitions);
    }
}

/// What the harvest of a format remembers for [`Duplicates`]; between harvests it is that of the last one.
///
/// Each reading of the lists has a number, which rises when a harvest begins and when it must begin a list again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DuplicateProgress {
    /// The rule of this harvest.
    pub policy: Duplicates,
    /// The current reading.
    pub reading: u64,
    /// The first reading of this harvest.
    pub harvest: u64,
    /// The first reading of the harvest before.
    pub harvest_before: u64,
    /// The sequence of the first change by this harvest.
    pub first_sequence: u64,
    /// Whether the lists so far lack no item that the source may have.
    pub is_conclusive: bool,
    /// The duplicates and repetitions of this harvest.
    pub counts: DuplicateCounts,
    /// Those before the current list.
    pub counts_before_list: DuplicateCounts,
}

impl DuplicateProgress {
    /// The begin of the next harvest.
    #[must_use]
    pub const fn next_harvest(self, policy: Duplicates, first_sequence: u64) -> Self {
        let reading = self.reading + 1;
        let counts = DuplicateCounts { duplicates: 0, repetitions: 0 };
        Self {
            policy,
            reading,
            harvest: reading,
            harvest_before: self.harvest,
            first_sequence,
            is_conclusive: true,
            counts,
            counts_before_list: counts,
        }
    }

    /// Begins a list.
    pub const fn begin_list(&mut self) {
        self.counts_before_list = self.counts;
    }

    /// Begins the current list again: its records come a second time.
    pub const fn begin_list_again(&mut self) {
        self.reading += 1;
        self.counts = self.counts_before_list;
    }
}

/// The contents that a source lists with one identifier, the first one first. Position n - 1 is the record
/// `identifier#n`, position 0 that without a suffix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Occurrences {
    /// The contents, at most [`OCCURRENCES_MAX`].
    pub items: Vec<Occurrence>,
    /// The last reading in which a further content was left to the next harvest; 0: none was.
    pub postponed: u64,
}

/// One content with an identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// The content.
    pub content: ListedContent,
    /// The last reading that contained it; 0: none.
    pub reading: u64,
}

/// What a source lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListedContent {
    /// A record with the hash of its content.
    Live(u64),
    /// A deleted record, or a suffix whose record has vanished.
    Deleted,
    /// The source has a record of its own with this suffix.
    Foreign,
}

/// Where a listed record is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// As the record with this number; 1 is that without a suffix.
    Stored(usize),
    /// It is stored already: the same content came before.
    Repeated,
    /// Not at all, as the policy wants.
    LeftOut,
    /// Not in this harvest: it may be a change of a record that came before. The next harvest lists it again.
    Postponed,
    /// Not at all: there are [`OCCURRENCES_MAX`] records with this identifier.
    Beyond,
}

impl Placement {
    /// How it counts.
    pub const fn counts(self) -> DuplicateCounts {
        let (duplicates, repetitions) = match self {
            Self::Stored(1) => (0, 0),
            Self::Repeated => (0, 1),
            Self::Stored(_) | Self::LeftOut | Self::Postponed | Self::Beyond => (1, 0),
        };
        DuplicateCounts { duplicates, repetitions }
    }
}

impl Occurrences {
    /// Places a listed record. `changed_after_secs` is a time by the clock of the source that is not after the begin of
    /// this harvest, in seconds since 1970; `None` on its first page. Not for [`Duplicates::Newest`].
    ///
    /// A content keeps its number from one harvest to the next. An unknown content is a change of the first record that
    /// this harvest has not seen yet. A record can change and move to a later page while a harvest reads the list; then
    /// its datestamp is late, and it is left to the next harvest once. A deleted record never hides a live one.
    pub fn place(
        &mut self,
        content: ListedContent,
        datestamp_secs: UnixSecs,
        changed_after_secs: Option<UnixSecs>,
        progress: &DuplicateProgress,
    ) -> Placement {
        let DuplicateProgress { policy, reading, harvest, harvest_before, .. } = *progress;
        let is_now = |item: &Occurrence| item.reading >= harvest;
        let is_live = |item: &Occurrence| matches!(item.content, ListedContent::Live(_));
        let found = self.items.iter().position(|item| is_now(item) && item.content == content);
        if let Some(found) = found {
            let is_repeated = self.items.get(found).is_some_and(|item| item.reading == reading);
            self.set(found, content, reading);
            return if is_repeated { Placement::Repeated } else { self.stored(found, policy) };
        }
        let has_live = self.items.iter().any(|item| is_now(item) && is_live(item));
        if content == ListedContent::Deleted {
            if has_live {
                return Placement::LeftOut;
            }
            self.set(0, content, reading);
            return Placement::Stored(1);
        }
        if policy == Duplicates::First {
            if !has_live {
                self.items.clear();
            }
            self.set(self.items.len().min(OCCURRENCES_MAX), content, reading);
            return self.stored(self.items.len() - 1, policy);
        }
        let same = self.items.iter().position(|item| !is_now(item) && item.content == content);
        if let Some(same) = same {
            self.set(same, content, reading);
            return Placement::Stored(same + 1);
        }
        let may_be_change = has_live && changed_after_secs.is_some_and(|after| datestamp_secs >= after);
        let was_postponed = (harvest_before..harvest).contains(&self.postponed) && self.postponed > 0;
        if may_be_change && !was_postponed {
            self.postponed = reading;
            return Placement::Postponed;
        }
        let unseen = self.items.iter().position(|item| !is_now(item) && is_live(item));
        let is_deleted = |item: &Occurrence| item.content == ListedContent::Deleted;
        let free = self.items.iter().position(is_deleted);
        // The lists show the record without a suffix as deleted, and its content is not known any more.
        let place = match self.items.first() {
            Some(first) if is_now(first) && is_deleted(first) => 0,
            _ => unseen.or(free).unwrap_or(self.items.len()),
        };
        if place >= OCCURRENCES_MAX {
            return Placement::Beyond;
        }
        self.set(place, content, reading);
        Placement::Stored(place + 1)
    }

    fn stored(&self, place: usize, policy: Duplicates) -> Placement {
        match policy {
            Duplicates::First if place > 0 => Placement::LeftOut,
            Duplicates::First | Duplicates::Newest | Duplicates::Suffix => Placement::Stored(place + 1),
        }
    }

    /// Sets the content of a position, which is at most the next one. Nothing happens beyond the maximum.
    pub fn set(&mut self, place: usize, content: ListedContent, reading: u64) {
        let item = Occurrence { content, reading };
        match self.items.get_mut(place) {
            Some(known) => *known = item,
            None if place < OCCURRENCES_MAX => self.items.push(item),
            None => {}
        }
    }

    /// The record `identifier#number`, unless the source has a record of its own with this identifier.
    pub fn suffixed(&self, number: usize) -> Option<&Occurrence> {
        let item = self.items.get(number.checked_sub(1)?)?;
        (item.content != ListedContent::Foreign).then_some(item)
    }

    /// Whether the lists of a harvest contained a live record at this position.
    pub fn is_listed(&self, place: usize, harvest: u64) -> bool {
        self.items
            .get(place)
            .is_some_and(|item| item.reading >= harvest && matches!(item.content, ListedContent::Live(_)))
    }
}

/// The identifier of the record with this number; 1 is that without a suffix.
pub fn with_suffix(identifier: &str, number: usize) -> String {
    if number < 2 { identifier.to_owned() } else { format!("{identifier}#{number}") }
}

/// The identifier before the suffix, and its number; `None` if the identifier has no suffix. A source can have such an
/// identifier itself.
pub fn split_suffix(identifier: &str) -> Option<(&str, usize)> {
    let (base, number) = identifier.rsplit_once('#')?;
    let is_canonical = !number.starts_with('0') && number.bytes().all(|byte| byte.is_ascii_digit());
    let number: usize = number.parse().ok()?;
    (is_canonical && !base.is_empty() && (2..=OCCURRENCES_MAX).contains(&number)).then_some((base, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    const AFTER: Option<UnixSecs> = Some(UnixSecs(1_000));

    fn harvest(policy: Duplicates, before: DuplicateProgress) -> DuplicateProgress {
        before.next_harvest(policy, 0)
    }

    /// Places contents with these hashes in a new harvest; 0 is a deleted record.
    fn list(
        known: &mut Occurrences,
        progress: &DuplicateProgress,
        contents: &[(u64, i64)],
    ) -> Vec<Placement> {
        let place = |&(hash, secs): &(u64, i64)| {
            let content = if hash == 0 { ListedContent::Deleted } else { ListedContent::Live(hash) };
            known.place(content, UnixSecs(secs), AFTER, progress)
        };
        contents.iter().map(place).collect()
    }

    #[test]
    fn contents_keep_their_numbers_in_any_order() {
        use Placement::{Repeated, Stored};
        let mut known = Occurrences::default();
        let first = harvest(Duplicates::Suffix, DuplicateProgress::default());
        let placed = list(&mut known, &first, &[(7, 1), (8, 1), (7, 1), (9, 1), (8, 1)]);
        assert_eq!(placed, [Stored(1), Stored(2), Repeated, Stored(3), Repeated]);
        let second = harvest(Duplicates::Suffix, first);
        assert_eq!(list(&mut known, &second, &[(9, 1), (7, 1), (8, 1)]), [Stored(3), Stored(1), Stored(2)]);
        // One of them has changed.
        let third = harvest(Duplicates::Suffix, second);
        assert_eq!(list(&mut known, &third, &[(9, 1), (7, 1), (80, 1)]), [Stored(3), Stored(1), Stored(2)]);
        // The list begins again, so its records come again and are no repetitions.
        let mut again = third;
        again.begin_list_again();
        assert_eq!(list(&mut known, &again, &[(9, 1), (7, 1)]), [Stored(3), Stored(1)]);
    }

    #[test]
    fn the_first_one_of_each_harvest_counts() {
        use Placement::{LeftOut, Repeated, Stored};
        let mut known = Occurrences::default();
        let first = harvest(Duplicates::First, DuplicateProgress::default());
        assert_eq!(
            list(&mut known, &first, &[(7, 1), (8, 9), (8, 9), (7, 1)]),
            [Stored(1), LeftOut, Repeated, Repeated]
        );
        let second = harvest(Duplicates::First, first);
        assert_eq!(list(&mut known, &second, &[(8, 9), (7, 1)]), [Stored(1), LeftOut]);
    }

    #[test]
    fn a_deleted_record_hides_no_live_one() {
        use Placement::{LeftOut, Stored};
        for policy in [Duplicates::First, Duplicates::Suffix] {
            let mut known = Occurrences::default();
            let first = harvest(policy, DuplicateProgress::default());
            assert_eq!(
                list(&mut known, &first, &[(0, 5), (7, 1), (0, 9)]),
                [Stored(1), Stored(1), LeftOut],
                "{policy:?}"
            );
            let second = harvest(policy, first);
            assert_eq!(list(&mut known, &second, &[(0, 9)]), [Stored(1)], "{policy:?}");
        }
    }

    #[test]
    fn a_change_during_the_harvest_is_a_duplicate_only_if_it_comes_twice() {
        use Placement::{Postponed, Stored};
        let mut known = Occurrences::default();
        let first = harvest(Duplicates::Suffix, DuplicateProgress::default());
        assert_eq!(list(&mut known, &first, &[(7, 1), (8, 1_000)]), [Stored(1), Postponed]);
        let second = harvest(Duplicates::Suffix, first);
        assert_eq!(list(&mut known, &second, &[(8, 1_000)]), [Stored(1)], "it was a change");
        let mut other = Occurrences::default();
        assert_eq!(list(&mut other, &first, &[(7, 1), (8, 1_000)]), [Stored(1), Postponed]);
        assert_eq!(list(&mut other, &second, &[(7, 1), (8, 1_000)]), [Stored(1), Stored(2)]);
    }

    #[test]
    fn the_number_of_records_with_one_identifier_has_a_limit() {
        for policy in [Duplicates::First, Duplicates::Suffix] {
            let mut known = Occurrences::default();
            let first = harvest(policy, DuplicateProgress::default());
            for hash in 1..=OCCURRENCES_MAX as u64 {
                list(&mut known, &first, &[(hash, 1)]);
            }
            let last = list(&mut known, &first, &[(9_999, 1)]);
            let expected = if policy == Duplicates::First { Placement::LeftOut } else { Placement::Beyond };
            assert_eq!(last, [expected]);
            assert_eq!(known.items.len(), OCCURRENCES_MAX);
        }
    }

    #[test]
    fn suffixes_are_read_as_they_are_written() {
        for number in [1, 2, 10, OCCURRENCES_MAX] {
            let written = with_suffix("oai:x:a#b", number);
            let expected = (number > 1).then_some(("oai:x:a#b", number));
            assert_eq!(split_suffix(&written), expected);
        }
        for other in ["a", "a#", "a#1", "a#02", "a#101", "a#+2", "#2", "a#2x", "a#99999999999999999999"] {
            assert_eq!(split_suffix(other), None, "{other}");
        }
    }
}
