use super::*;
use crate::process::GroupId;

const GRACE: Duration = Duration::from_secs(4);

const fn at(millis: u64) -> BootTime {
    BootTime::from_nanos((1_000_000 + millis) * 1_000_000)
}

fn guarding(deadline: u64) -> Switch {
    let mut switch = Switch::new(GRACE);
    switch.hear(Message::Group(GroupId { pid: 9, inode: 9 }));
    switch.hear(Message::Deadline(at(deadline)));
    switch
}

#[test]
fn a_closed_pipe_stops_the_job_at_once() {
    let mut switch = guarding(60_000);
    assert_eq!(switch.act(at(0)), Act::Wait(Some(at(56_200))));
    switch.pipe_closed(at(10));
    assert_eq!(switch.act(at(10)), Act::Term);
    switch.has_hit();
    assert_eq!(switch.act(at(10)), Act::Wait(Some(at(4_010))));
    assert_eq!(switch.act(at(4_010)), Act::Kill);
    assert_eq!(switch.act(at(4_010)), Act::Wait(Some(at(5_010))));
    assert!(!switch.has_stopped_the_job(at(4_010)));
    switch.job_is_gone();
    assert_eq!(switch.act(at(4_011)), Act::Leave);
    assert!(switch.has_stopped_the_job(at(4_011)));
}

#[test]
fn a_closed_pipe_leaves_no_time_past_the_deadline() {
    let mut switch = guarding(60_000);
    switch.pipe_closed(at(59_000));
    assert_eq!(switch.act(at(59_000)), Act::Term);
    assert_eq!(switch.act(at(60_000)), Act::Kill);
}

#[test]
fn a_deadline_that_passes_stops_the_job_in_time_and_a_later_one_comes_too_late() {
    let mut switch = guarding(60_000);
    switch.hear(Message::Deadline(at(80_000)));
    assert_eq!(switch.act(at(76_199)), Act::Wait(Some(at(76_200))));
    assert_eq!(switch.act(at(76_200)), Act::Term);
    switch.hear(Message::Deadline(at(200_000)));
    assert_eq!(switch.act(at(79_999)), Act::Wait(Some(at(80_000))));
    assert_eq!(switch.act(at(80_000)), Act::Kill);
    assert_eq!(switch.act(at(80_001)), Act::Wait(Some(at(81_000))));
    // It waits for a goodbye: if it ended before, `lease` would take it for killed.
    assert_eq!(switch.act(at(81_000)), Act::Wait(None));
    switch.pipe_closed(at(90_000));
    assert_eq!(switch.act(at(90_000)), Act::Leave);
}

#[test]
fn a_stop_that_lease_has_begun_only_needs_the_kill() {
    let mut switch = guarding(60_000);
    switch.hear(Message::KillAt(at(30_000)));
    assert_eq!(switch.act(at(1)), Act::Wait(Some(at(30_000))));
    switch.hear(Message::KillAt(at(40_000)));
    assert_eq!(switch.act(at(30_000)), Act::Kill);
    assert!(!switch.has_stopped_the_job(at(90_000)));
}

#[test]
fn a_lease_that_dies_while_it_stops_the_job_leaves_term_and_kill_to_the_watchdog() {
    let mut switch = guarding(60_000);
    switch.hear(Message::KillAt(at(3_000)));
    switch.pipe_closed(at(1_000));
    assert_eq!(switch.act(at(1_000)), Act::Term);
    assert_eq!(switch.act(at(3_000)), Act::Kill);
}

#[test]
fn zombies_that_are_never_reaped_keep_the_watchdog_for_a_second_and_no_longer() {
    let mut switch = guarding(60_000);
    switch.pipe_closed(at(59_000));
    assert_eq!(switch.act(at(59_000)), Act::Term);
    switch.has_hit();
    assert_eq!(switch.act(at(60_000)), Act::Kill);
    assert!(switch.is_stopping(at(60_999)));
    assert_eq!(switch.act(at(60_999)), Act::Wait(Some(at(61_000))));
    assert!(!switch.is_stopping(at(61_000)));
    assert!(switch.has_stopped_the_job(at(61_000)));
    assert_eq!(switch.act(at(61_000)), Act::Leave);
}

#[test]
fn a_goodbye_is_a_goodbye_whatever_else_is_in_the_pipe() {
    let mut switch = guarding(60_000);
    switch.hear(Message::Goodbye);
    switch.pipe_closed(at(70_000));
    assert_eq!(switch.act(at(70_000)), Act::Leave);
    assert!(!switch.has_stopped_the_job(at(90_000)));
}

#[test]
fn without_a_job_there_is_nothing_to_stop() {
    let mut switch = Switch::new(GRACE);
    switch.hear(Message::Deadline(at(0)));
    assert_eq!(switch.act(at(9_000)), Act::Wait(None));
    switch.pipe_closed(at(9_000));
    assert_eq!(switch.act(at(9_000)), Act::Leave);
}

#[test]
fn a_job_that_starts_after_its_deadline_is_killed_at_once() {
    let mut switch = Switch::new(GRACE);
    switch.hear(Message::Deadline(at(0)));
    switch.hear(Message::Group(GroupId { pid: 9, inode: 9 }));
    assert_eq!(switch.act(at(9_000)), Act::Kill);
}

#[test]
fn a_group_that_is_gone_ends_the_stop() {
    let mut switch = guarding(60_000);
    switch.pipe_closed(at(0));
    assert_eq!(switch.act(at(0)), Act::Term);
    switch.has_hit();
    assert!(switch.is_stopping(at(1)));
    switch.job_is_gone();
    assert_eq!(switch.act(at(1)), Act::Leave);
    assert!(switch.has_stopped_the_job(at(1)));
}

#[test]
fn a_signal_that_reaches_no_process_has_stopped_none() {
    let mut switch = guarding(60_000);
    assert_eq!(switch.act(at(56_200)), Act::Term);
    switch.job_is_gone();
    assert_eq!(switch.act(at(56_200)), Act::Wait(None));
    assert!(!switch.has_stopped_the_job(at(60_000)));
}

#[test]
fn the_slack_never_eats_a_short_grace() {
    let mut switch = Switch::new(Duration::from_millis(100));
    switch.hear(Message::Group(GroupId { pid: 9, inode: 9 }));
    switch.hear(Message::Deadline(at(1_000)));
    assert_eq!(switch.act(at(0)), Act::Wait(Some(at(925))));
    let mut switch = Switch::new(Duration::ZERO);
    switch.hear(Message::Group(GroupId { pid: 9, inode: 9 }));
    switch.hear(Message::Deadline(at(1_000)));
    assert_eq!(switch.act(at(1_000)), Act::Kill);
}
