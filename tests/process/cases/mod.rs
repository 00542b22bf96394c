//! The tests, by what is done to the workers.

mod blocking;
mod budget;
mod chaos;
mod clock;
mod control;
mod drain;
mod kill;
mod outage;
mod pause;
mod reap;
mod timers;
mod wake;

use libtest_mimic::Trial;

use crate::trial;

macro_rules! trials {
    ($($module:ident { $($test:ident)* })*) => {
        vec![$($(trial(concat!(stringify!($module), "::", stringify!($test)), $module::$test)),*),*]
    };
}

/// Every test; one that is missing here is dead code, which the lints refuse.
pub(crate) fn all() -> Vec<Trial> {
    trials! {
        blocking {
            a_handler_that_blocks_a_one_thread_runtime_keeps_its_claim
            eight_handlers_that_compute_on_every_thread_keep_their_claims
            a_handler_that_blocks_past_its_timeout_counts_as_timed_out
            a_task_of_many_ttls_is_never_started_twice
        }
        budget {
            a_crash_is_no_attempt
            a_task_that_kills_its_workers_is_ended_by_its_crash_budget
            one_timeout_among_ten_tasks_disturbs_nobody
            a_panic_is_retried_at_once_and_its_message_is_kept
            a_timeout_stops_the_handler
        }
        chaos {
            every_task_finishes_over_fifty_kills
            frozen_workers_leave_each_instance_in_one_index
            a_graph_of_every_shape_completes_exactly_when_all_its_nodes_have
            a_fan_of_a_hundred_survives_its_worker
        }
        clock {
            a_clock_that_jumps_an_hour_disturbs_no_healthy_task
            a_claim_of_a_dead_worker_does_not_live_for_the_hour_that_the_clock_went_back
        }
        control {
            a_cancelled_task_is_stopped_and_never_retried
            a_cancel_at_the_moment_of_the_commit_leaves_one_end_and_says_which
        }
        drain {
            a_draining_worker_keeps_its_claim_until_the_commit
            a_worker_whose_grace_is_over_hands_over_only_what_it_has_stopped
            a_blocked_handler_that_outlives_the_grace_commits_nothing_twice
            workers_that_are_told_to_stop_leave_no_claim
        }
        kill {
            a_killed_workers_task_is_taken_over_soon_whatever_its_timeout
            a_claim_key_deleted_by_hand_frees_the_task_of_a_dead_worker
            a_claim_key_deleted_by_hand_costs_a_living_worker_nothing
            a_worker_recovers_tasks_that_it_cannot_run_itself
        }
        outage {
            tasks_outlive_a_short_absence_of_redis
            tasks_outlive_an_absence_of_twice_their_ttl
            tasks_outlive_a_silence_of_twice_their_ttl
            a_silent_redis_interrupts_no_task
            cut_connections_lose_no_start_and_no_task
        }
        pause {
            a_frozen_worker_learns_that_it_lost_and_stops_its_handler
            the_late_commit_of_a_frozen_worker_is_refused
        }
        reap {
            a_reaper_that_races_with_commits_undoes_none
        }
        timers {
            a_delayed_task_holds_no_claim_and_runs_once
            five_thousand_timers_and_eight_keepers_promote_each_once
            busy_slots_hold_up_no_timer_and_no_deadline
        }
        wake {
            only_a_worker_that_can_run_the_task_is_woken
            a_busy_worker_of_two_partitions_is_still_found
        }
    }
}
