// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of placement.

use std::vec::Vec;

use proptest::prelude::*;

use crate::placement::{Load, MOST_MOVERS, NoRoom, place, spread};

fn load(cpu: u32, weight: u32, free: u32) -> Load {
    Load { cpu, weight, free }
}

#[test]
fn an_entitys_own_cpu_comes_first_however_loaded() {
    let loads = [load(0, 0, 1), load(3, 900, 1)];
    assert_eq!(place(&loads, Some(3)), Ok(3));
}

#[test]
fn the_least_loaded_takes_it_where_its_own_is_full_or_gone() {
    let loads = [load(0, 200, 9), load(1, 100, 9), load(2, 100, 9), load(3, 0, 0)];
    assert_eq!(place(&loads, Some(3)), Ok(1), "full; of equals the first");
    assert_eq!(place(&loads, Some(7)), Ok(1), "gone");
    assert_eq!(place(&loads, None), Ok(1));
}

#[test]
fn where_no_cpu_has_room_none_is_chosen() {
    assert_eq!(place(&[load(0, 0, 0)], Some(0)), Err(NoRoom));
    assert_eq!(place(&[], None), Err(NoRoom));
}

#[test]
fn heavy_ones_are_dealt_out_first() {
    let mut loads = [load(0, 0, 9), load(1, 0, 9)];
    let mut dealt = Vec::new();
    spread(&[100, 400, 100, 200], &mut loads, |mover, to| dealt.push((mover, to))).expect("package");
    assert_eq!(dealt, [(1, 0), (3, 1), (0, 1), (2, 1)]);
    assert_eq!([loads[0].weight, loads[1].weight], [400, 400]);
}

#[test]
fn all_are_dealt_out_or_none() {
    let mut heard = 0;
    assert_eq!(spread(&[1, 1, 1], &mut [load(0, 0, 1), load(1, 0, 1)], |_, _| heard += 1), Err(NoRoom));
    assert_eq!(spread(&[1; MOST_MOVERS + 1], &mut [load(0, 0, 999)], |_, _| heard += 1), Err(NoRoom));
    assert_eq!(heard, 0);
    assert_eq!(spread(&[], &mut [], |_, _| heard += 1), Ok(()), "no entity needs no room");
}

/// CPUs with distinct numbers.
fn loads() -> impl Strategy<Value = Vec<Load>> {
    prop::collection::vec((0..4000_u32, 0..8_u32), 0..12).prop_map(|loads| {
        let numbered = loads.into_iter().enumerate();
        numbered.map(|(at, (weight, free))| load(at as u32 * 3, weight, free)).collect()
    })
}

proptest! {
    #[test]
    fn no_vcpu_is_placed_where_there_is_no_room(loads in loads(), own in prop::option::of(0..40_u32)) {
        match place(&loads, own) {
            Ok(at) => {
                let chosen = loads.iter().find(|load| load.cpu == at).expect("one of them");
                prop_assert!(chosen.free > 0);
                let is_least = loads.iter().all(|load| load.free == 0 || chosen.weight <= load.weight);
                prop_assert!(is_least || own == Some(at));
            }
            Err(NoRoom) => prop_assert!(loads.iter().all(|load| load.free == 0)),
        }
    }

    #[test]
    fn each_is_dealt_out_once_and_none_could_go_where_less_is_to_do(
        before in loads(),
        weights in prop::collection::vec(1..=1024_u32, 0..40),
    ) {
        let mut after = before.clone();
        let mut dealt = Vec::new();
        let outcome = spread(&weights, &mut after, |mover, to| dealt.push((mover, to)));
        let room: u32 = before.iter().map(|load| load.free).sum();
        prop_assert_eq!(outcome.is_ok(), room as usize >= weights.len());
        if outcome.is_err() {
            prop_assert!(dealt.is_empty());
            prop_assert_eq!(before, after);
            return Ok(());
        }
        let mut movers: Vec<usize> = dealt.iter().map(|(mover, _)| *mover).collect();
        movers.sort_unstable();
        prop_assert_eq!(movers, (0..weights.len()).collect::<Vec<_>>());
        for (old, new) in before.iter().zip(&after) {
            let got: Vec<u32> = dealt.iter().filter(|(_, to)| *to == new.cpu).map(|(mover, _)| weights[*mover]).collect();
            prop_assert_eq!(new.weight, old.weight + got.iter().sum::<u32>());
            prop_assert_eq!(old.free - new.free, got.len() as u32);
            // Without the last it got, it had no more to do than any other that has room even now.
            let Some(last) = got.last() else { continue };
            for other in after.iter().filter(|other| other.free > 0 && other.cpu != new.cpu) {
                prop_assert!(new.weight - last <= other.weight);
            }
        }
    }
}
