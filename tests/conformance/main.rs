//! What every store does: each case is written once and runs on all of them.
//!
//! Time stands still unless a case moves it, on Redis too.

mod cases;
mod env;
mod prelude;

/// One test for each case and store: `memory::<area>::<case>` and `redis::<area>::<case>`.
macro_rules! conformance {
    ($($area:ident: $($case:ident)+;)+) => {
        mod memory { $(mod $area { $(
            #[tokio::test]
            async fn $case() {
                crate::cases::$area::$case(crate::env::On::Memory).await;
            }
        )+ })+ }
        mod redis { $(mod $area { $(
            #[tokio::test]
            async fn $case() {
                crate::cases::$area::$case(crate::env::On::Redis).await;
            }
        )+ })+ }
    };
}

conformance! {
    start:
        a_start_makes_the_first_tasks_ready_in_order
        a_start_may_begin_after_a_delay
        a_start_may_begin_at_a_time_and_at_once_if_it_has_passed
        a_repeated_start_answers_as_before_and_changes_nothing
        each_id_policy_answers_as_it_says
        a_finished_instance_may_be_replaced
        a_replaced_run_sees_nothing_of_the_old_one
        the_last_eight_replaced_runs_are_remembered
        the_first_of_two_starts_of_one_id_in_a_call_is_superseded
        a_replaced_instance_tells_its_waiters_and_owners
        requests_over_their_bounds_are_refused_before_anything_is_done;
    claim:
        tasks_are_claimed_from_the_head_with_their_input
        a_claim_takes_no_more_than_it_wants_and_looks_into_lists_in_order
        a_repeated_claim_gets_the_same_tasks_again
        an_entry_that_stands_twice_is_one_task
        an_entry_of_a_task_that_is_not_ready_is_dropped
        inputs_that_do_not_fit_the_reply_are_left_out
        deadlines_are_written_down_before_the_task_runs
        the_overall_deadline_counts_from_the_first_claim
        entries_of_finished_instances_are_dropped_in_bounded_batches
        an_unreadable_record_is_set_aside_and_stops_nobody
        payloads_are_the_same_bytes_through_retries;
    fence:
        a_settlement_with_another_nonce_is_lost
        a_settlement_of_another_run_is_lost
        a_released_task_is_lost_to_who_settles_late
        a_reaped_task_is_lost_to_who_settles_late
        an_expired_claim_that_nobody_reaped_may_still_settle
        a_heartbeat_of_a_replaced_run_is_lost
        a_settlement_of_a_removed_instance_is_gone
        a_settlement_after_a_cancel_is_refused_each_time
        a_cancel_and_a_settlement_have_exactly_one_winner;
    settle:
        a_chain_ends_with_the_result_of_its_last_task
        a_repeated_settlement_is_stored_with_the_same_follow_up_claim
        a_repeat_after_completion_is_still_stored
        a_follow_up_is_claimed_in_the_same_transition
        a_follow_up_is_not_claimed_past_others_when_fairness_is_asked_for
        a_retry_is_delayed_and_counts_a_failure
        a_retry_without_delay_is_ready_at_once
        a_failure_for_good_ends_the_instance_and_closes_its_tasks
        only_the_newest_errors_are_kept
        a_delayed_follow_up_is_promoted_when_it_is_due
        items_of_one_call_apply_one_after_another;
    join:
        a_join_fires_once_when_enough_have_arrived
        a_straggler_changes_nothing_but_its_own_record
        an_arrival_that_fires_can_be_claimed_at_once
        a_straggler_of_a_finished_instance_is_refused;
    signal:
        a_waiting_node_is_ready_with_its_signal
        a_signal_that_comes_early_is_kept_and_taken_in_order
        two_waits_for_one_name_are_served_in_the_order_of_their_waiting
        a_repeated_signal_counts_once_wherever_the_first_is
        signals_that_cannot_be_taken_are_refused_with_the_reason
        no_more_than_a_thousand_early_signals_are_kept
        the_ids_of_a_thousand_signals_are_remembered
        a_wait_that_takes_too_long_is_ready_for_the_engine
        the_first_of_a_signal_and_its_timeout_wins
        a_node_is_entered_by_the_worker_that_claims_it
        a_repeated_settlement_of_a_wait_is_stored_once
        a_dead_worker_does_not_lose_the_signal_that_it_took
        an_instance_that_ends_waits_no_more
        a_replaced_run_leaves_no_signal_behind
        a_worker_parked_at_the_list_of_the_node_is_woken
        payloads_are_the_same_bytes_whether_early_or_awaited
        a_damaged_record_keeps_its_signal_aside;
    heartbeat:
        a_heartbeat_extends_the_claim
        a_heartbeat_sets_an_expired_key_again
        a_claim_is_not_extended_beyond_its_deadline
        a_heartbeat_learns_of_a_cancel
        a_heartbeat_learns_that_the_task_was_taken;
    release:
        released_tasks_are_at_the_head_in_their_order
        a_release_counts_neither_failure_nor_crash
        a_repeated_release_is_lost
        a_release_of_a_cancelled_instance_drops_the_claim
        who_leaves_gives_up_presence_and_keeper_role;
    reap:
        a_claim_that_expires_is_a_crash_and_ready_again
        live_claims_and_work_without_a_claim_are_never_touched
        a_living_worker_is_in_doubt_first_and_then_has_lost_the_task
        a_heartbeat_clears_the_doubt
        a_deleted_claim_key_is_set_again_or_requeued
        crashes_over_the_budget_end_the_instance
        crashes_wait_longer_each_time
        the_crash_budget_is_apart_from_failures
        a_task_past_its_deadline_is_left_to_the_engine
        the_oldest_are_reaped_first_in_bounded_batches
        two_reapers_recover_a_claim_once
        claims_of_milliseconds_expire_after_milliseconds
        tickets_of_finished_instances_fall_when_met;
    tick:
        each_timer_is_promoted_once_in_bounded_batches
        the_keeper_stays_keeper_until_its_time_runs_out
        a_step_of_the_clock_pauses_reaping_and_pruning
        claims_that_live_too_long_after_a_step_back_are_cut
        finished_instances_are_pruned_after_their_retention
        an_index_entry_of_a_replaced_run_prunes_nothing
        retention_is_never_less_than_a_minute;
    hints:
        only_a_worker_parked_at_the_filled_list_is_woken
        the_newest_parked_worker_is_woken_first
        a_worker_parked_long_ago_is_not_woken
        a_full_claim_wakes_others_for_lists_it_did_not_look_into
        a_full_claim_passes_what_is_left_to_another
        a_full_worker_is_not_parked_any_more
        a_woken_worker_that_does_nothing_is_woken_again
        the_keeper_hears_of_a_timer_before_all_others
        owners_hear_of_a_cancel
        waiters_hear_of_the_end
        status_changes_are_published
        a_listener_that_does_not_listen_holds_nobody_up;
    control:
        a_cancel_is_final_in_every_state
        a_control_names_the_run_it_means
        a_repeated_control_answers_as_before
        a_record_of_a_newer_version_is_left_untouched;
    listing:
        every_instance_is_listed_once_whatever_the_size_of_a_page
        a_listing_shows_what_a_table_needs
        filters_choose_by_all_that_they_name
        what_stays_is_listed_while_others_come_and_go
        finished_instances_are_listed_from_the_newest_while_more_end
        traces_of_what_is_over_or_replaced_are_not_shown
        unreadable_records_are_named_and_hide_nothing
        a_listing_does_bounded_work_for_a_page
        listings_cross_partitions
        foreign_cursors_are_refused
        lists_tell_what_waits_and_who_waits_for_it
        workers_are_listed_until_they_are_silent
        definitions_are_listed_with_the_current_one_marked;
    pause:
        entries_of_a_paused_instance_are_parked_when_met_and_come_back
        a_pause_is_refused_where_it_makes_no_sense
        running_tasks_of_a_paused_instance_go_on_and_settle
        joins_fire_while_an_instance_is_paused
        timers_and_lost_claims_of_a_paused_instance_are_parked
        a_repeated_claim_gets_its_tasks_also_when_they_were_paused_meanwhile
        a_paused_instance_can_end_in_every_way
        many_parked_tickets_come_back_in_bounded_batches
        a_task_that_failed_for_good_may_pause_its_instance_for_a_person
        crashes_over_the_budget_may_pause_the_instance_for_a_person;
    retry:
        a_dead_instance_goes_on_from_the_task_that_failed
        branches_that_were_open_when_an_instance_died_go_on_where_they_were
        a_join_waits_again_for_what_a_retry_took_back
        attempts_never_go_back_in_what_a_retry_took_back
        a_retry_is_refused_where_it_makes_no_sense
        a_retried_instance_that_dies_again_is_kept_from_its_last_death
        a_finished_instance_is_deleted_at_once_and_a_live_one_is_not;
    reads:
        values_of_an_older_run_are_not_there
        finished_instances_are_listed_from_an_offset
        counts_tell_where_everything_is
        the_first_publication_of_a_definition_moves_its_name;
}
