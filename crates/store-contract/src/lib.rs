//! The contract of the stores of a data folder: tests that every implementation passes. The implementation in memory shows
//! that the tests need no local database.
//!
//! An implementation runs all of it with [`contract_tests!`]. Each module is the contract of one trait.

#![allow(missing_docs, reason = "the name of a test says what the stores promise")]

pub mod activity;
pub mod capabilities;
pub mod full_texts;
pub mod identifiers;
pub mod ledger;
mod memory;
pub mod mirror;
pub mod notices;
pub mod profiles;
pub mod quarantine;
pub mod views;

pub use memory::Memory;

use oaimend_store::{
    ActivityLog, DetectedCapabilities, FullTextStore, IdentifierStore, ListLedger, NoticeStore, Quarantine,
    RepositoryProfiles, ViewStore,
};
use std::sync::Arc;

/// An implementation of the stores.
pub trait Backend {
    /// Opens the stores of this test. The caller has closed them before.
    fn open(&self) -> Stores;
}

/// The stores that an implementation opens.
#[derive(Clone, Debug)]
pub struct Stores {
    pub ledger: Arc<dyn ListLedger>,
    pub quarantine: Arc<dyn Quarantine>,
    pub profiles: RepositoryProfiles,
    pub capabilities: DetectedCapabilities,
    pub activity: ActivityLog,
    pub notices: Arc<dyn NoticeStore>,
    pub views: Arc<dyn ViewStore>,
    pub identifiers: Arc<dyn IdentifierStore>,
    pub full_texts: Arc<dyn FullTextStore>,
}

impl Stores {
    /// Closes all of them. Everything recorded before survives.
    pub fn close(&self) {
        self.ledger.close();
        self.profiles.close();
        self.quarantine.close();
        self.capabilities.close();
        self.activity.close();
        self.notices.close();
        self.views.close();
        self.identifiers.close();
        self.full_texts.close();
    }
}

/// The tests of the contract, for an implementation of [`Backend`] that `$backend` prepares.
#[macro_export]
macro_rules! contract_tests {
    ($backend:expr) => {
        $crate::contract_tests! { $backend; ledger:
            a_record_is_readable_at_once_and_after_a_restart
            a_page_that_is_requested_twice_counts_once
            a_token_of_lists_with_different_arguments_is_ambiguous
            harvests_with_the_same_arguments_share_a_list_and_its_common_items_count
            a_harvest_that_starts_alone_replaces_the_delivered_items
            a_list_may_loop_where_an_earlier_page_started_alike
            harvests_that_follow_reused_tokens_are_mixed_until_all_have_ended
            a_list_with_an_unknown_start_is_known_from_its_request_token
            the_window_of_a_token_covers_all_its_lists
            an_incomplete_page_makes_the_list_incomplete
            the_progress_of_a_replay_is_known_until_the_replay_is_over
            the_last_datestamp_is_from_an_earlier_page
            abandoned_lists_are_evicted
            a_token_that_points_to_a_later_list_stays_when_its_first_list_is_removed
            a_later_list_with_the_same_tokens_is_as_old_as_a_harvest_that_may_continue_in_it
            a_token_after_different_pages_is_ambiguous_for_an_hour
            a_token_from_a_cached_page_leads_to_its_first_place
            identifiers_are_known_while_all_pages_announce_one_size
            a_page_that_is_dropped_begins_an_epoch
            a_closed_ledger_refuses
        }
        $crate::contract_tests! { $backend; quarantine:
            a_repeated_record_is_stored_once_and_counted
            a_full_quarantine_stores_nothing_of_a_response
            removed_entries_are_gone_and_make_room
            a_whole_record_resolves_its_entries_until_it_is_broken_again
            only_the_same_record_in_the_same_format_resolves_an_entry
            the_entries_that_were_resolved_first_make_room
            entries_are_listed_by_state_and_after_a_key
            a_closed_quarantine_refuses
        }
        $crate::contract_tests! { $backend; profiles:
            profiles_survive_a_restart
            a_closed_store_saves_no_profile
        }
        $crate::contract_tests! { $backend; capabilities:
            capabilities_survive_a_restart_but_not_a_new_mapping
            a_closed_store_saves_no_capabilities
        }
        $crate::contract_tests! { $backend; activity:
            saved_activity_replaces_the_older_one
            a_closed_store_saves_no_activity
        }
        $crate::contract_tests! { $backend; notices:
            saved_notices_replace_the_older_ones
            times_of_reports_survive_a_restart
            a_closed_store_of_notices_refuses
        }
        $crate::contract_tests! { $backend; views:
            members_move_and_leave_and_survive_a_restart
            members_of_the_generation_before_have_left
            a_prepared_switch_is_that_of_an_unprepared_one
            a_closed_store_of_views_refuses
        }
        $crate::contract_tests! { $backend; identifiers:
            records_are_found_by_all_their_identifiers
            places_are_listed_in_parts
            other_collections_do_not_count
            a_changed_record_has_only_its_current_identifiers
            a_collection_is_removed_in_steps
            random_changes_leave_no_other_places
            a_closed_store_of_identifiers_refuses
        }
        $crate::contract_tests! { $backend; full_texts:
            full_texts_are_kept_by_item_and_survive_a_restart
            items_that_wait_are_due_in_order
            full_texts_of_a_repository_are_forgotten_alone
            a_closed_store_of_full_texts_refuses
        }
    };
    ($backend:expr; $contract:ident: $($name:ident)+) => {
        mod $contract {
            use super::*;

            $(
                #[tokio::test]
                async fn $name() {
                    $crate::$contract::$name(&$backend).await;
                }
            )+
        }
    };
}

/// The tests of the contract of the store of the mirror, for an implementation of
/// [`MirrorBackend`](mirror::fixtures::MirrorBackend) that `$backend` prepares.
#[macro_export]
macro_rules! mirror_tests {
    ($backend:expr) => {
        $crate::contract_tests! { $backend; mirror:
            a_page_and_its_progress_survive_a_restart
            an_unchanged_record_keeps_its_stamp
            a_new_datestamp_alone_keeps_the_stamp
            a_deleted_record_stays_as_a_tombstone
            the_last_record_of_a_page_counts
            a_stale_progress_stores_nothing
            a_stamp_below_the_last_one_stores_nothing
            a_reservation_never_sinks
            a_set_contains_its_subsets
            pages_of_any_length_are_in_their_sets
            bounds_are_included
            records_are_counted_by_sequence
            a_page_has_at_least_one_record
            headers_come_without_bytes
            headers_of_several_records_come_in_the_order_of_the_request
            chosen_records_are_current
            identifiers_come_in_order
            an_item_has_formats
            repairs_are_kept_with_the_current_version_of_a_record
            small_states_are_kept
            a_repository_is_forgotten_alone
            the_version_of_a_collection_changes_with_each_commit
            each_change_has_another_number
            changed_repositories_are_named
            a_closed_store_refuses
            an_unknown_repository_is_empty
            a_store_behaves_like_the_model
        }
    };
}
