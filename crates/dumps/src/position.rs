//! A position: a state of the stamps of one store.
//!
//! It is readable text such as `5f0c3a9e1b7d2468-0-1795810800`: the id of the store, its epoch, and the
//! second up to which everything is known. It has no MAC, because a forged position selects nothing that its sender
//! could not request otherwise.

use oaimend_oai::UnixSecs;
use std::fmt;
use std::str::FromStr;

/// Longest text of a position, in bytes.
const TEXT_BYTES_MAX: usize = 120;

/// A state of the stamps of one store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Position {
    /// The id of the store. A store that was restored from a backup has another one.
    pub store: u64,
    /// The epoch of the store, see [`StoreState::epoch`].
    pub epoch: u64,
    /// The second of the position, since 1970.
    pub secs: UnixSecs,
    /// The changes of this second that are before the position.
    pub place: Place,
}

/// The changes of the second of a position that are known at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// All of them, in all repositories.
    End,
    /// All of them, and the dump is of the collection with this number. A collection that was removed and harvested again
    /// has another one.
    EndOf(u64),
    /// Those up to this change, in the order of the numbers of collections and of the sequences in them.
    After {
        /// The number of the collection.
        collection: u64,
        /// The sequence of the change.
        sequence: u64,
    },
}

/// The state of a store to which a position must belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreState {
    /// The id of the store.
    pub store: u64,
    /// Another number once a repository was removed from the store, or is not served any more: nobody names the records
    /// that it had as deleted.
    pub epoch: u64,
    /// The last second that no later commit changes.
    pub closed_secs: UnixSecs,
}

/// Why nothing can follow a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaleReason {
    /// It is of another store, or of this one before a backup was restored.
    OtherStore,
    /// A repository was removed since, and the records that it had are not named as deleted.
    Forgotten,
    /// It is later than the store.
    Future,
}

impl StaleReason {
    /// The text for a client: why, and what to do.
    pub const fn text(self) -> &'static str {
        match self {
            Self::OtherStore => {
                "this position is not of this store: it is of another server, or a backup was restored since; read \
                 everything again without `since`"
            }
            Self::Forgotten => {
                "a repository was removed from this server after this position, so the changes since then are not known; \
                 read everything again without `since`"
            }
            Self::Future => {
                "this position is later than the store, so it is not of this store; read everything again without `since`"
            }
        }
    }
}

impl Position {
    /// Checks that what follows the position is known. `collection` is the number of the only collection that is read;
    /// `None` if several are.
    ///
    /// # Errors
    ///
    /// It is not.
    pub fn check(&self, state: &StoreState, collection: Option<u64>) -> Result<(), StaleReason> {
        if self.store != state.store {
            return Err(StaleReason::OtherStore);
        }
        let is_same = match (self.place, collection) {
            (Place::EndOf(known), Some(collection)) => known == collection,
            _ => self.epoch == state.epoch,
        };
        if !is_same {
            return Err(StaleReason::Forgotten);
        }
        if self.secs > state.closed_secs { Err(StaleReason::Future) } else { Ok(()) }
    }

    /// The first second that may have changes after the position.
    pub const fn next_secs(&self) -> UnixSecs {
        match self.place {
            Place::End | Place::EndOf(_) => self.secs.plus(1),
            Place::After { .. } => self.secs,
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{}-{}", self.store, self.epoch, self.secs.0)?;
        match self.place {
            Place::End => Ok(()),
            Place::EndOf(collection) => write!(f, "-c{collection}"),
            Place::After { collection, sequence } => write!(f, "-a{collection}.{sequence}"),
        }
    }
}

/// The text is no position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPosition;

impl FromStr for Position {
    type Err = NoPosition;

    fn from_str(text: &str) -> Result<Self, NoPosition> {
        read(text).filter(|position| position.to_string() == text).ok_or(NoPosition)
    }
}

fn read(text: &str) -> Option<Position> {
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let mut parts = text.split('-');
    let store = u64::from_str_radix(parts.next()?, 16).ok()?;
    let epoch = parts.next()?.parse().ok()?;
    let secs = UnixSecs(parts.next()?.parse().ok()?);
    let place = match parts.next() {
        None => Place::End,
        Some(part) => match (part.strip_prefix('c'), part.strip_prefix('a')) {
            (Some(collection), _) => Place::EndOf(collection.parse().ok()?),
            (None, Some(change)) => {
                let (collection, sequence) = change.split_once('.')?;
                Place::After { collection: collection.parse().ok()?, sequence: sequence.parse().ok()? }
            }
            (None, None) => return None,
        },
    };
    // Times after the year 9999 are no datestamps.
    let is_time = (0..253_402_300_800).contains(&secs.0);
    (parts.next().is_none() && is_time).then_some(Position { store, epoch, secs, place })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(place: Place) -> Position {
        Position { store: 0xab, epoch: 2, secs: UnixSecs(1_700_000_000), place }
    }

    #[test]
    fn a_position_is_read_as_it_was_written() {
        for place in [Place::End, Place::EndOf(7), Place::After { collection: 7, sequence: u64::MAX }] {
            let position = position(place);
            assert_eq!(position.to_string().parse(), Ok(position));
        }
        assert_eq!(position(Place::EndOf(7)).to_string(), "00000000000000ab-2-1700000000-c7");
    }

    #[test]
    fn hostile_texts_are_no_positions() {
        let good = position(Place::After { collection: 1, sequence: 2 }).to_string();
        for text in [
            "",
            "-",
            "--",
            "ab-2-1700000000",
            "00000000000000AB-2-1700000000",
            "00000000000000ab-2-1700000000-",
            "00000000000000ab-2-1700000000-c",
            "00000000000000ab-2-1700000000-c-1",
            "00000000000000ab-2-1700000000-a1",
            "00000000000000ab-2-1700000000-a1.2.3",
            "00000000000000ab-+2-1700000000",
            "00000000000000ab-2-99999999999999",
            "00000000000000ab-2--5",
            "00000000000000ab-18446744073709551616-0",
            "../../etc/passwd",
            "é-2-1",
        ] {
            assert_eq!(text.parse::<Position>(), Err(NoPosition), "{text}");
        }
        for at in 0..good.len() {
            // A part of a position may be another position, but never fails otherwise.
            let _ = good[..at].parse::<Position>();
        }
        assert_eq!(format!("{}{}", good, "0".repeat(200)).parse::<Position>(), Err(NoPosition));
    }

    #[test]
    fn a_position_of_another_state_is_stale() {
        let state = StoreState { store: 0xab, epoch: 2, closed_secs: UnixSecs(1_700_000_000) };
        let end = position(Place::End);
        assert_eq!(end.check(&state, None), Ok(()));
        assert_eq!(end.check(&StoreState { store: 1, ..state }, None), Err(StaleReason::OtherStore));
        assert_eq!(end.check(&StoreState { epoch: 3, ..state }, Some(7)), Err(StaleReason::Forgotten));
        let early = StoreState { closed_secs: UnixSecs(1_699_999_999), ..state };
        assert_eq!(end.check(&early, None), Err(StaleReason::Future));
        // The removal of another repository does not matter to the dump of one.
        let of_one = position(Place::EndOf(7));
        assert_eq!(of_one.check(&StoreState { epoch: 3, ..state }, Some(7)), Ok(()));
        assert_eq!(of_one.check(&state, Some(8)), Err(StaleReason::Forgotten));
        assert_eq!(of_one.check(&StoreState { epoch: 3, ..state }, None), Err(StaleReason::Forgotten));
    }
}
