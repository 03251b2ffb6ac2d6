//! The numbers of sets, and of the lists of sets that records are in.
//!
//! A record of the set `a:b` is in the set `a` too. Records of one repository that are in the same sets share one list.
//!
//! Each level of a setSpec is a set with a row, and with postings for each record in it. So a source could fill the disk
//! with one record. The sets of a record are limited: of a setSpec beyond a limit, the highest levels are kept, because
//! the record is in them too.

use super::index::IndexError;
use super::tables::{RepositoryRow, SET_LIST_NUMBERS, SET_LISTS, SETS};
use oaimend_store::harvest_state::SETS_MAX;
use redb::{ReadableTable, WriteTransaction};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

/// Maximum number of levels of a setSpec: `a:b:c` has three.
const SET_LEVELS_MAX: usize = 32;
/// Maximum length of a setSpec, in bytes.
const SET_SPEC_BYTES_MAX: usize = 1 << 10;
/// Maximum length of all setSpecs of a record, in bytes.
const SET_SPECS_BYTES_MAX: usize = 64 << 10;
/// Maximum number of sets that a record is in, with the parents of its sets.
const RECORD_SETS_MAX: usize = 1_000;

/// The sets of the records of one page.
#[derive(Debug, Default)]
pub(super) struct SetLists {
    by_specs: HashMap<Vec<String>, RecordSets>,
    by_number: HashMap<u32, Rc<[u32]>>,
}

/// The sets of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordSets {
    /// The number of their list.
    pub(super) number: u32,
    /// The setSpecs within the limits.
    pub(super) set_specs: Rc<[String]>,
    /// The number of setSpecs beyond a limit. Their highest levels are in `set_specs`.
    pub(super) surplus: u64,
}

impl SetLists {
    /// The sets of a record with these setSpecs; new sets and lists get a number.
    pub(super) fn of_record(
        &mut self,
        writing: &WriteTransaction,
        repository: &mut RepositoryRow,
        set_specs: &[String],
    ) -> Result<RecordSets, IndexError> {
        if let Some(known) = self.by_specs.get(set_specs) {
            return Ok(known.clone());
        }
        let (mut sets, mut kept, mut bytes, mut surplus) = (BTreeSet::new(), Vec::new(), 0, 0);
        for set_spec in set_specs {
            let left = SET_SPEC_BYTES_MAX.min(SET_SPECS_BYTES_MAX - bytes);
            let levels = levels(set_spec).take(SET_LEVELS_MAX).take_while(|level| level.len() <= left);
            let mut end = None;
            for level in levels {
                let is_full = sets.len() >= RECORD_SETS_MAX;
                let number = number_of_set(writing, repository, level, !is_full)?;
                let Some(number) = number.filter(|set| !is_full || sets.contains(set)) else { break };
                sets.insert(number);
                end = Some(level);
            }
            surplus += u64::from(end != Some(set_spec));
            let is_repeated =
                |level: &str| level.len() < set_spec.len() && kept.iter().any(|kept| kept == level);
            if let Some(level) = end.filter(|level| !is_repeated(level)) {
                bytes += level.len();
                kept.push(level.to_owned());
            }
        }
        let number = self.number_of_list(writing, repository, sets)?;
        let found = RecordSets { number, set_specs: kept.into(), surplus };
        self.by_specs.insert(set_specs.to_vec(), found.clone());
        Ok(found)
    }

    fn number_of_list(
        &mut self,
        writing: &WriteTransaction,
        repository: &mut RepositoryRow,
        sets: BTreeSet<u32>,
    ) -> Result<u32, IndexError> {
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
        self.by_number.insert(number, sets.into());
        Ok(number)
    }

    /// The sets of a list.
    pub(super) fn sets(
        &mut self,
        writing: &WriteTransaction,
        repository: u32,
        number: u32,
    ) -> Result<Rc<[u32]>, IndexError> {
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

/// The number of a set. A set without one gets one, unless the repository has too many sets or `may_be_new` is false.
fn number_of_set(
    writing: &WriteTransaction,
    repository: &mut RepositoryRow,
    set_spec: &str,
    may_be_new: bool,
) -> Result<Option<u32>, IndexError> {
    let mut table = writing.open_table(SETS)?;
    let known = table.get((repository.number, set_spec))?.map(|number| number.value());
    if known.is_some() || !may_be_new || repository.next_set as usize >= SETS_MAX {
        return Ok(known);
    }
    repository.next_set += 1;
    table.insert((repository.number, set_spec), repository.next_set)?;
    Ok(Some(repository.next_set))
}

/// The levels of a setSpec from the highest one on: `a`, `a:b`, `a:b:c`.
fn levels(set_spec: &str) -> impl Iterator<Item = &str> {
    let parents = set_spec.match_indices(':').map(|(at, _)| &set_spec[..at]);
    parents.chain(std::iter::once(set_spec))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_levels_of_a_set_end_before_each_colon() {
        let sets: Vec<&str> = levels("a:b:c").collect();
        assert_eq!(sets, ["a", "a:b", "a:b:c"]);
        assert_eq!(levels("a").collect::<Vec<_>>(), ["a"]);
    }

    /// The sets of records with these setSpecs, in a store with so many sets before them.
    fn of_records(sets_before: u32, records: &[Vec<String>]) -> Vec<RecordSets> {
        let backend = redb::backends::InMemoryBackend::new();
        let database = redb::Database::builder().create_with_backend(backend).expect("a database");
        let writing = database.begin_write().expect("a transaction");
        let mut repository = RepositoryRow { number: 0, next_set: sets_before, next_set_list: 0 };
        let mut lists = SetLists::default();
        let of_record = |record: &Vec<String>| lists.of_record(&writing, &mut repository, record);
        records.iter().map(of_record).collect::<Result<_, _>>().expect("a number")
    }

    fn kept(set_specs: &[String]) -> (Vec<String>, u64) {
        let RecordSets { set_specs, surplus, .. } = of_records(0, &[set_specs.to_vec()]).remove(0);
        (set_specs.to_vec(), surplus)
    }

    #[test]
    fn the_highest_levels_of_deep_and_long_sets_are_kept() {
        let deep = vec!["a"; 20_000].join(":");
        let cut = vec!["a"; SET_LEVELS_MAX].join(":");
        assert_eq!(kept(&[deep.clone(), "b".to_owned()]), (vec![cut.clone(), "b".to_owned()], 1));
        assert_eq!(kept(&[cut.clone(), deep.clone(), format!("{deep}:b")]), (vec![cut.clone()], 2));
        assert_eq!(kept(std::slice::from_ref(&cut)), (vec![cut.clone()], 0));
        let long = "b".repeat(SET_SPEC_BYTES_MAX);
        assert_eq!(kept(&[format!("a:{long}"), format!("{long}c")]), (vec!["a".to_owned()], 2));
        assert_eq!(kept(std::slice::from_ref(&long)), (vec![long.clone()], 0));
    }

    #[test]
    fn a_record_is_in_a_limited_number_of_sets() {
        let many: Vec<String> = (0..RECORD_SETS_MAX + 7).map(|number| format!("s{number}")).collect();
        assert_eq!(kept(&many), (many[..RECORD_SETS_MAX].to_vec(), 7));
        // Each is two sets, and one of them is the same.
        let pairs: Vec<String> = (0..RECORD_SETS_MAX).map(|number| format!("a:{number}")).collect();
        assert_eq!(kept(&pairs), ([&pairs[..RECORD_SETS_MAX - 1], &["a".to_owned()]].concat(), 1));
        let long: Vec<String> = (0..100).map(|number| format!("{number:01024}")).collect();
        assert_eq!(kept(&long), (long[..64].to_vec(), 36));
    }

    #[test]
    fn a_repository_has_a_limited_number_of_sets() {
        let before = u32::try_from(SETS_MAX).expect("a small number") - 2;
        let records = [["a:b"], ["a:c"], ["d"], ["a:b"]].map(|record| record.map(str::to_owned).to_vec());
        let found = of_records(before, &records);
        let kept: Vec<(&[String], u64)> = found.iter().map(|sets| (&*sets.set_specs, sets.surplus)).collect();
        let (a, a_b) = (["a".to_owned()], ["a:b".to_owned()]);
        assert_eq!(kept, [(&a_b[..], 0), (&a[..], 1), (&[][..], 1), (&a_b[..], 0)]);
        assert_eq!(found[0].number, found[3].number);
    }
}
