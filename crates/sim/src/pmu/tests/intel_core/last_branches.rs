// SPDX-License-Identifier: MIT OR Apache-2.0
//! Branch records: their user, their kinds, and their order.

use super::*;

#[test]
fn the_last_branches_are_the_guests_own_and_the_youngest_comes_first() {
    let core = core();
    let mut guest = Guest::new(&core, 0, 0);
    guest.driver.switch_in(CounterSet(!0));
    guest.writes(&[(LBR_DEPTH, 8), (LBR_CONTROL, 0x7f_0007)]);
    guest.run(&Activity { branches: &branches(10, 0x100), ..Activity::default() });
    core.0.borrow_mut().run(&host_work(), &mut Forbidden);
    let from = |guest: &mut Guest| [0, 1, 7, 8].map(|at| guest.driver.read(LBR_FROM + at));
    assert_eq!(from(&mut guest), [0x109, 0x108, 0x102, 0].map(Ok));
    guest.driver.switch_out();
    assert!(core.0.borrow().is_clear());
    assert_eq!(from(&mut guest), [0x109, 0x108, 0x102, 0].map(Ok), "they can be read while they are away");
    guest.driver.switch_in(CounterSet(!0));
    guest.run(&Activity { branches: &branches(1, 0x200), ..Activity::default() });
    assert_eq!(from(&mut guest), [0x200, 0x109, 0x103, 0].map(Ok));
    guest.writes(&[(LBR_DEPTH, 8)]);
    assert_eq!(from(&mut guest), [0; 4].map(Ok), "a write of the depth empties them");
}

#[test]
fn only_branches_of_the_kinds_and_modes_asked_for_are_recorded() {
    let core = core();
    let mut guest = Guest::new(&core, 0, 0);
    guest.driver.switch_in(CounterSet(!0));
    guest.writes(&[(LBR_CONTROL, 0x20_0005)]);
    let kernel = Run { is_kernel: true, ..Run::default() };
    guest.run(&Activity { run: kernel, branches: &branches(1, 0x100), ..Activity::default() });
    let call = Branch { kind: Kind::RelativeCall, ..branches(1, 0x200)[0] };
    guest.run(&Activity { branches: &[call], ..Activity::default() });
    assert_eq!(guest.driver.read(LBR_FROM), Ok(0));
    guest.run(&Activity { branches: &branches(1, 0x300), ..Activity::default() });
    assert_eq!(guest.driver.read(LBR_FROM), Ok(0x300));
}
