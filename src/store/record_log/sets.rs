//! The numbers of sets, and of the lists of sets that records are in.
//!
//! A record of the set `a:b` is in the set `a` too. Records of one repository that are in the same sets share one list.

use super::tables::{RepositoryRow, SET_LIST_NUMBERS, SET_LISTS, SETS};
use crate::store::mirror::MirrorError;
use redb::{ReadableTable, WriteTransaction};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

/// The sets of the records of one page.
#[derive(Debug, Default)]
pub(super) struct SetLists {
    by_specs: HashMap<Vec<String>, u32>,
    by_number: HashMap<u32, Rc<[u32]>>,
}

impl SetLists {
    /// The number of the list of sets for these setSpecs; new sets and lists get a number.
    pub(super) fn number(
        &mut self,
        writing: &WriteTransaction,
        repository: &mut RepositoryRow,
        set_specs: &[String],
    ) -> Result<u32, MirrorError> {
        if let Some(number) = self.by_specs.get(set_specs) {
            return Ok(*number);
        }
        let mut sets = BTreeSet::new();
        let mut table = writing.open_table(SETS)?;
        for set_spec in set_specs.iter().flat_map(|set_spec| with_parents(set_spec)) {
            let known = table.get((repository.number, set_spec))?.map(|number| number.value());
            sets.insert(match known {
                Some(number) => number,
                None => {
                    repository.next_set += 1;
                    table.insert((repository.number, set_spec), repository.next_set)?;
                    repository.next_set
                }
            });
        }
        let sets: Vec<u32> = sets.into_iter().collect();
        let bytes: Vec<u8> = sets.iter().flat_map(|set| set.to_be_bytes()).collect();
        let mut numbers = writing.open_table(SET_LIST_NUMBERS)?;
        let known = numbers.get((repository.number, bytes.as_slice()))?.map(|number| number.value());
        let number = match known {
            Some(number) => number,
            None => {
                let number = repository.next_set_list;
                repository.next_set_list += 1;
                numbers.insert((repository.number, bytes.as_slice()), number)?;
                writing.open_table(SET_LISTS)?.insert((repository.number, number), bytes.as_slice())?;
                number
            }
        };
        self.by_specs.insert(set_specs.to_vec(), number);
        self.by_number.insert(number, sets.into());
        Ok(number)
    }

    /// The sets of a list.
    pub(super) fn sets(
        &mut self,
        writing: &WriteTransaction,
        repository: u32,
        number: u32,
    ) -> Result<Rc<[u32]>, MirrorError> {
        if let Some(sets) = self.by_number.get(&number) {
            return Ok(Rc::clone(sets));
        }
        let lists = writing.open_table(SET_LISTS)?;
        let bytes = lists.get((repository, number))?;
        let words = bytes.as_ref().map_or(&[][..], |bytes| bytes.value().as_chunks().0);
        let sets: Rc<[u32]> = words.iter().map(|word| u32::from_be_bytes(*word)).collect();
        self.by_number.insert(number, Rc::clone(&sets));
        Ok(sets)
    }
}

/// A setSpec and its parents: `a:b:c`, `a:b`, `a`.
fn with_parents(set_spec: &str) -> impl Iterator<Item = &str> {
    let parents = set_spec.match_indices(':').map(|(at, _)| &set_spec[..at]);
    std::iter::once(set_spec).chain(parents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parents_of_a_set_end_before_each_colon() {
        let sets: Vec<&str> = with_parents("a:b:c").collect();
        assert_eq!(sets, ["a:b:c", "a", "a:b"]);
        assert_eq!(with_parents("a").collect::<Vec<_>>(), ["a"]);
    }
}
