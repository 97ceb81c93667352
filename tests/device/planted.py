"""Bugs planted in kernels/device (planted.h): by number, with the case of host.cpp, or the program, that finds each.

Numbers up to 40 are those of the host in Python that had the same bug; those that C++ cannot have are absent.
Kinds: ``order`` of streams, ``lifetime`` of memory, ``race`` of threads, ``device`` that is current, ``recording``,
``error``, ``packing`` of entries.
"""

from __future__ import annotations

from typing import NamedTuple

RACES = "races"  # races.cpp, under ThreadSanitizer


class Bug(NamedTuple):
    number: int
    name: str
    kind: str
    found_by: str


BUGS = [
    Bug(1, "the first run overtakes the caller", "order", "the_first_run_sees_what_the_caller_queued"),
    Bug(2, "nobody waits for the first run", "order", "a_replay_on_a_device_copies_its_results"),
    Bug(3, "what is resident is not waited for", "order", "resident_arrays_may_be_read_on_any_stream"),
    Bug(4, "a read to pageable memory does not wait", "order", "a_large_upload_has_read_its_array"),
    Bug(5, "an upload does not wait", "order", "a_large_upload_has_read_its_array"),
    Bug(7, "memory is cleared on the legacy stream", "order", "work_is_queued_on_the_callers_stream"),
    Bug(8, "staged memory is overwritten before it is copied", "order", "staged_memory_is_used_again_after_its_copies"),
    Bug(9, "only the last staged copy is waited for", "order",
        "staged_copies_of_several_streams_are_all_waited_for"),
    Bug(10, "staged copies go to the legacy stream", "order", "arrays_go_up_and_come_down_unchanged"),
    Bug(11, "a staged array is copied from where it is", "order", "a_small_upload_has_read_its_array"),
    Bug(12, "a read does not wait", "order", "arrays_of_one_allocation_come_down_in_one_copy"),
    Bug(13, "replays run where they were recorded", "order", "a_replay_on_a_device_copies_its_results"),
    Bug(14, "calls on the device overlap", "order", "calls_on_two_streams_do_not_overlap"),
    Bug(16, "a recording's arrays do not hold their memory", "lifetime", "results_outlive_the_recording"),
    Bug(17, "a recording does not hold its memory", "lifetime", "a_replay_reads_the_host_again"),
    Bug(18, "pinned memory of a recording is not kept", "lifetime", "a_recording_keeps_its_pinned_memory"),
    Bug(19, "constants come from the recording's own memory", "lifetime", "constants_are_not_overwritten_by_replays"),
    Bug(21, "a recording keeps no residents", "lifetime", "resident_arrays_are_not_part_of_a_recording"),
    Bug(22, "what is resident is the recording's", "lifetime", "resident_arrays_are_not_part_of_a_recording"),
    Bug(24, "memory of recordings is of a pool", "lifetime", "results_outlive_the_recording"),
    Bug(25, "what a failed recording made is kept", "lifetime", "a_recording_that_fails_gives_its_memory_back"),
    Bug(26, "a block comes back while it is in use", "lifetime", "recordings_share_memory"),
    Bug(27, "results lie where dropped memory was", "lifetime", "results_lie_side_by_side"),
    Bug(28, "out of memory is final", "lifetime", "out_of_memory_frees_what_is_cached_and_collects_garbage"),
    Bug(29, "out of memory collects nothing", "lifetime", "out_of_memory_frees_what_is_cached_and_collects_garbage"),
    Bug(30, "all threads record", "race", "other_threads_go_on_beside_a_recording"),
    Bug(31, "threads stage in the same memory", "race", "two_queues_stage_apart"),
    Bug(33, "modules are loaded by every thread", "race", "two_threads_load_a_unit_once"),
    Bug(35, "resident memory is the current device's", "device", "everything_works_while_another_device_is_current"),
    Bug(36, "launches go to the current device", "device", "everything_works_while_another_device_is_current"),
    Bug(37, "pinned memory is made on the current device", "device", "memory_is_freed_on_a_thread_without_a_context"),
    Bug(38, "replays go to the current device", "device", "everything_works_while_another_device_is_current"),
    Bug(39, "memory is given back on the current device", "device", "memory_is_freed_on_a_thread_without_a_context"),
    Bug(40, "free memory is the current device's", "device", "everything_works_while_another_device_is_current"),
    # ---- Of this layer alone
    Bug(41, "the last staged copies of a queue have no event", "order",
        "the_next_queue_waits_for_the_staged_copies_of_the_last"),
    Bug(42, "a block without a pool is used before it is free", "order",
        "a_device_without_pools_reuses_memory_safely"),
    Bug(43, "resident memory is not below the cap", "error", "the_environment_caps_the_memory"),
    Bug(44, "out of memory waits beside a capture", "recording", "no_memory_beside_a_recording_does_not_break_it"),
    Bug(45, "another thread's default stream frees memory", "order",
        "memory_of_a_threads_default_stream_is_freed_elsewhere"),
    Bug(46, "resident memory is freed on the current device", "device",
        "memory_is_freed_on_a_thread_without_a_context"),
    Bug(47, "memory does not hold its stream", "lifetime", "a_callers_stream_lives_as_long_as_its_memory"),
    Bug(48, "pinned memory is taken without a lock", "race", RACES),
    Bug(49, "copies on the device go to the legacy stream", "order", "work_is_queued_on_the_callers_stream"),
    Bug(50, "what lies between two arrays is read", "lifetime", "what_lies_between_arrays_is_not_read"),
    Bug(51, "code is loaded in a recording", "recording", "what_cannot_be_replayed_is_refused"),
    Bug(52, "a second recording goes on where the first ended", "recording",
        "a_replay_on_a_device_copies_its_results"),
    Bug(53, "other constants are taken for the same", "recording", "what_cannot_be_replayed_is_refused"),
    Bug(54, "resident blocks are not asked for again", "recording",
        "grids_that_no_longer_run_at_once_are_recorded_anew"),
    Bug(55, "a replay on the device reads the host", "recording", "a_replay_on_a_device_copies_its_results"),
    Bug(56, "a failed run is not waited for", "order", "a_recording_that_fails_gives_its_memory_back"),
    Bug(57, "a failed run takes the recording's memory", "recording",
        "a_failed_run_of_another_kind_keeps_the_recording"),
    Bug(58, "a replay for the host overtakes the caller", "order", "a_replay_comes_after_what_the_caller_queued"),
    Bug(59, "captures of others are broken", "recording", "captures_of_others_are_not_broken"),
    Bug(60, "the caller's device is not restored", "device", "the_callers_current_device_is_restored"),
    Bug(61, "a broken device is used on", "error", "a_kernels_fault_is_final"),
    Bug(62, "kernels are published before they are whole", "race", RACES),
    Bug(63, "refused code is final", "error", "refused_code_is_replaced"),
    Bug(64, "shared memory is opted in to for the first size", "error", "shared_memory_is_opted_in_to_once"),
    Bug(65, "a forked child uses the driver", "error", "a_forked_child_is_told"),
    Bug(66, "recorded launches are timed", "recording", "recorded_launches_are_not_timed"),
    Bug(67, "weights of codes are in the order of entries", "packing", "weights_with_codes_are_the_same_weights"),
    Bug(68, "codes of two weights are exchanged", "packing", "weights_with_codes_are_the_same_weights"),
    Bug(69, "the mask of columns lacks a bit", "packing", "weights_with_codes_are_the_same_weights"),
]  # fmt: skip
