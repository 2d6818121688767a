// SPDX-License-Identifier: MIT OR Apache-2.0
use proptest::prelude::*;

use super::*;

#[test]
fn each_arrival_is_matched_by_one_departure() {
    let mut residence = Residence::nowhere();
    assert_eq!(residence.depart(0), Err(Misplaced::Nowhere));
    assert_eq!(residence.arrive(3), Ok(()));
    assert_eq!(residence.cpu(), Some(3));
    assert_eq!(residence.arrive(4), Err(Misplaced::StillOn(3)));
    assert_eq!(residence.depart(3), Err(Misplaced::IsOn(4)));
    assert_eq!(residence.arrive(3), Ok(()));
    assert_eq!(residence.depart(3), Ok(()));
    assert_eq!((residence.depart(3), residence), (Err(Misplaced::Nowhere), Residence::nowhere()));
}

proptest! {
    /// Against a plain list of what happened: an arrival is right after a departure or at the beginning, a departure
    /// right after an arrival on the same CPU.
    #[test]
    fn only_matched_moves_are_right(moves in prop::collection::vec((any::<bool>(), 0_u32..3), 0..20)) {
        let mut residence = Residence::nowhere();
        let mut last = (false, 0);
        for (is_arrival, cpu) in moves {
            let is_right = if is_arrival { !last.0 } else { last == (true, cpu) };
            let done = if is_arrival { residence.arrive(cpu) } else { residence.depart(cpu) };
            prop_assert_eq!(done.is_ok(), is_right);
            last = (is_arrival, cpu);
        }
    }
}
