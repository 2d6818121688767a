// SPDX-License-Identifier: MIT OR Apache-2.0
use profile::MOST_WORDS;

use super::*;

const CODE: u64 = 0x1000;

fn stacks(samples: &[Sample<'_>]) -> Stacks {
    let words: Vec<u32> = samples.iter().flat_map(|sample| sample.encode(&mut [0; MOST_WORDS]).to_vec()).collect();
    let functions = |at: u64| match at {
        0x1010 => vec!["inlined".to_owned(), "exit; handled".to_owned()],
        0x101f => vec!["run".to_owned()],
        other => vec![format!("{other:#x}")],
    };
    Stacks::of(&words, CODE, functions, |number| format!("g{number}"))
}

#[test]
fn equal_samples_are_one_stack_and_shares_add_up() {
    let host: &[u32] = &[0x10, 0x20];
    let stacks = stacks(&[Sample::Idle, Sample::Guest(3), Sample::Host(host), Sample::Guest(3), Sample::Host(host)]);
    assert_eq!(stacks.folded(), "guest g3 2\nidle 1\nrun;exit: handled;inlined 2\n");
    assert_eq!(stacks.total(), 5);
}

#[test]
fn an_address_counts_as_a_call_only_where_it_is_one() {
    let stacks = stacks(&[Sample::Host(&[0x1f]), Sample::Host(&[5, 0x1f, 0x20])]);
    assert_eq!(stacks.folded(), "run 1\nrun;0x101e;0x1005 1\n");
    assert_eq!(stacks.hottest(), [("0x1005", 1), ("run", 1)]);
}

#[test]
fn an_address_outside_of_the_image_is_shown_as_such() {
    assert_eq!(stacks(&[Sample::Host(&[])]).folded(), "outside of the image 1\n");
    assert_eq!(stacks(&[]).total(), 0);
}
