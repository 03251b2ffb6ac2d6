//! A simulation of views: an incremental harvester of a view misses no record, and keeps none that has left the view.
//!
//! A run simulates a mirror of two repositories, a view of them, and harvesters of the view. Records change, enter and
//! leave the set of the view, are deleted, and move between the repositories, a repository is removed and harvested
//! again, and the definition of the view changes, also back. The view follows in small steps, commits are slow, clocks
//! step by an hour, and the program restarts. At the end each harvester requests one more incremental list. Then its copy
//! must be equal to the view.

mod lists;
mod mirror;
mod run;
mod view;

use super::{assert_exercised, assert_found, assert_no_run_fails};
use run::run;

/// A rule that does not hold in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broken {
    /// A record that does not match any more is no member.
    DeparturesAreForgotten,
    /// A record that does not match any more keeps the stamp with which it came.
    DeparturesKeepTheirStamp,
    /// The members are stored after the place that they are known up to.
    PlacesWithoutMembers,
    /// Lists are as late as those of the mirror, although the view does not know all commits.
    ListsPastTheMembers,
    /// Lists end before the first unknown commit of one repository.
    CompleteInOneRepository,
    /// The time up to which the members are complete is determined before the start of the list.
    CompleteBeforeTheList,
    /// An item has the datestamp of its shown record.
    ItemsHaveTheStampOfTheirRecord,
    /// A collection that was removed and harvested again is followed from the same sequence on.
    ReplacedCollectionsAreFollowed,
    /// A redefinition changes no datestamp.
    RedefinitionsWithoutStamp,
    /// ResponseDates do not wait until a redefinition is visible.
    RedefinitionsAreNoCommits,
    /// Members that the new definition does not choose are removed.
    OldMembersAreForgotten,
    /// Members that the new definition does not choose leave with the stamp that they had.
    OldMembersKeepTheirStamp,
    /// A request lists the definition that it found, although another one is in use now.
    ReplacedMembersAreListed,
    /// A definition that is configured again while another one is being read is no change.
    ChangesAreTakenBack,
}

#[track_caller]
fn assert_needed(broken: Broken) {
    assert_found(&format!("{broken:?}"), |seed| run(seed, Some(broken)).err());
}

#[test]
fn harvesters_of_views_miss_no_record_and_keep_none_that_has_left() {
    assert_no_run_fails(|seed| run(seed, None).err());
}

#[test]
fn the_simulation_exercises_what_it_promises() {
    assert_exercised(|seed| run(seed, None).expect("a run without misses").named());
}

#[test]
fn without_members_that_have_left_records_stay() {
    assert_needed(Broken::DeparturesAreForgotten);
}

#[test]
fn with_departures_that_keep_their_stamp_records_stay() {
    assert_needed(Broken::DeparturesKeepTheirStamp);
}

#[test]
fn with_places_that_are_stored_before_members_records_are_missed() {
    assert_needed(Broken::PlacesWithoutMembers);
}

#[test]
fn with_lists_past_the_members_records_are_missed() {
    assert_needed(Broken::ListsPastTheMembers);
}

#[test]
fn with_members_that_are_complete_in_one_repository_records_are_missed() {
    assert_needed(Broken::CompleteInOneRepository);
}

#[test]
fn with_an_end_that_is_older_than_the_list_records_are_missed() {
    assert_needed(Broken::CompleteBeforeTheList);
}

#[test]
fn with_items_that_have_the_stamp_of_their_record_records_are_missed() {
    assert_needed(Broken::ItemsHaveTheStampOfTheirRecord);
}

#[test]
fn with_replaced_collections_that_are_followed_records_are_missed() {
    assert_needed(Broken::ReplacedCollectionsAreFollowed);
}

#[test]
fn with_redefinitions_without_a_stamp_records_are_missed() {
    assert_needed(Broken::RedefinitionsWithoutStamp);
}

#[test]
fn with_redefinitions_that_are_no_commits_records_are_missed() {
    assert_needed(Broken::RedefinitionsAreNoCommits);
}

#[test]
fn without_the_members_of_the_old_definition_records_stay() {
    assert_needed(Broken::OldMembersAreForgotten);
}

#[test]
fn with_members_of_the_old_definition_that_keep_their_stamp_records_stay() {
    assert_needed(Broken::OldMembersKeepTheirStamp);
}

#[test]
fn with_lists_of_replaced_members_records_are_missed() {
    assert_needed(Broken::ReplacedMembersAreListed);
}

#[test]
fn with_changes_that_are_taken_back_records_are_missed() {
    assert_needed(Broken::ChangesAreTakenBack);
}
