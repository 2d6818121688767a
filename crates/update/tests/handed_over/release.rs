// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory becomes free only once it is not needed: neither by a CPU that still waits in it, nor by a reader of a log
//! there, nor by the hand-over block that names the rest.

use handover::layout::Purpose;
use update::release::{Act, Release};

/// The harm of memory that is freed too early.
#[derive(Debug, PartialEq, Eq)]
enum Harm {
    CpuInFreeMemory,
    LogLost,
    BlockGone,
    Leaked,
}

fn harm(left_behind: &[u32], acts: &[Act]) -> Option<Harm> {
    let (mut waiting, mut is_log_read, mut free) = (left_behind.to_vec(), false, Vec::new());
    for act in acts {
        match *act {
            Act::CopyLog => is_log_read = !free.contains(&Purpose::Log),
            Act::Reset(apic_id) => waiting.retain(|other| *other != apic_id),
            Act::Free(_) if free.contains(&Purpose::Record) => return Some(Harm::BlockGone),
            Act::Free(Purpose::SwitchPages) if !waiting.is_empty() => return Some(Harm::CpuInFreeMemory),
            Act::Free(Purpose::Log) if !is_log_read => return Some(Harm::LogLost),
            Act::Free(purpose) => free.push(purpose),
        }
    }
    let all = [Purpose::SwitchPages, Purpose::Log, Purpose::Blocks, Purpose::Record];
    all.iter().any(|purpose| !free.contains(purpose)).then_some(Harm::Leaked)
}

#[test]
fn nothing_becomes_free_while_it_is_needed() {
    for left_behind in [vec![], vec![4], (1..256).collect()] {
        let acts: Vec<Act> = Release::begin(left_behind.clone()).collect();
        assert_eq!(harm(&left_behind, &acts), None, "{acts:?}");
    }
}

#[test]
fn any_two_acts_that_depend_on_each_other_do_harm_the_other_way_round() {
    let acts: Vec<Act> = Release::begin(vec![4]).collect();
    let moved_last = |act: Act| {
        let mut moved = acts.clone();
        moved.retain(|other| *other != act);
        moved.push(act);
        harm(&[4], &moved)
    };
    assert_eq!(moved_last(Act::Reset(4)), Some(Harm::CpuInFreeMemory));
    assert_eq!(moved_last(Act::CopyLog), Some(Harm::LogLost));
    assert_eq!(moved_last(Act::Free(Purpose::Blocks)), Some(Harm::BlockGone));
    assert_eq!(harm(&[4], &acts[..acts.len() - 1]), Some(Harm::Leaked));
}
