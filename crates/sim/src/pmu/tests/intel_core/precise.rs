// SPDX-License-Identifier: MIT OR Apache-2.0
//! PEBS: records, buffers, and areas that a guest sets up to harm.

use super::*;

#[test]
fn an_overflow_writes_a_record_and_interrupts_when_the_buffer_is_nearly_full() {
    let core = core();
    let mut guest = Guest::sampling(&core, 1024, 96, 100);
    guest.cycles(250, 0x11);
    assert_eq!((guest.records(), guest.interrupts), (vec![0x11, 0x11], 0));
    assert_eq!(guest.driver.read(COUNTER), Ok(MASK + 1 - 50), "it has begun again at the value in its memory");
    assert_eq!(guest.driver.read(STATUS), Ok(0), "an overflow that writes a record is no more than that");
    guest.cycles(50, 0x22);
    assert_eq!((guest.records(), guest.interrupts), (vec![0x11, 0x11, 0x22], 1));
    assert_eq!(guest.driver.read(STATUS), Ok(1 << 62));
    guest.writes(&[(CLEAR, 1 << 62)]);
    assert_eq!(guest.driver.read(STATUS), Ok(0));
}

#[test]
fn adaptive_records_have_what_was_asked_for() {
    let core = core();
    let mut guest = Guest::sampling(&core, 4096, 4096, 100);
    let groups = Group::REGISTERS | Group::BRANCHES | 1 << 24;
    guest.writes(&[(DATA_CONFIG, groups), (SELECT, CYCLES | 1 << 34), (LBR_CONTROL, 0x7f_0007)]);
    assert_eq!(guest.driver.read(SELECT), Ok(CYCLES | 1 << 34));
    let run = Run { cycles: 100, ..Run::default() };
    guest.run(&Activity { run, address: 0x33, branches: &branches(3, 0x500), ..Activity::default() });
    assert_eq!((guest.index(), record_bytes(groups)), (224, 224));
    assert_eq!(guest.memory.0[&BUFFER], groups | 224 << 48);
    assert_eq!([176, 184, 200].map(|at| guest.memory.0[&(BUFFER + at)]), [0x502, 0x1502, 0x501], "the youngest first");
    guest.writes(&[(SELECT, CYCLES)]);
    guest.cycles(100, 0x44);
    assert_eq!(guest.index(), 224 + 32, "without the bit it is the shortest");
}

#[test]
fn a_full_buffer_takes_no_more_and_nothing_goes_beyond_it() {
    let core = core();
    let mut guest = Guest::sampling(&core, 80, 1 << 20, 10);
    guest.cycles(1000, 0x11);
    assert_eq!((guest.records().len(), guest.memory.0[&(BUFFER + 64)], guest.interrupts), (2, 0, 0));
}

#[test]
fn a_hostile_area_harms_no_other_user() {
    let far = u64::MAX - 7;
    let areas: [(u64, &[(u64, u64)]); 6] = [
        (0xffff_ffff_ffff_fff8, &[]),
        (0xdead_0000, &[]),
        (AREA, &[(ds::INDEX, far), (ds::MAXIMUM, u64::MAX)]),
        (AREA, &[(ds::INDEX, 0x9999_0000), (ds::MAXIMUM, u64::MAX), (ds::THRESHOLD, 0)]),
        (AREA, &[(ds::INDEX, AREA), (ds::MAXIMUM, u64::MAX), (ds::THRESHOLD, far)]),
        (AREA, &[(ds::INDEX, BUFFER), (ds::MAXIMUM, BUFFER + 64), (ds::THRESHOLD, u64::MAX)]),
    ];
    for (area, fields) in areas {
        let core = core();
        let mut hostile = Guest::sampling(&core, 256, 256, 10);
        hostile.writes(&[(DS_AREA, area)]);
        fields.iter().for_each(|&(field, value)| _ = hostile.memory.0.insert(AREA + field, value));
        hostile.cycles(100, 0x66);
        core.0.borrow_mut().run(&host_work(), &mut Forbidden);
        hostile.driver.switch_out();
        let mut other = Guest::sampling(&core, 256, 256, 10);
        other.cycles(20, 0x77);
        assert_eq!(other.records(), [0x77, 0x77], "area {area:#x}, {fields:x?}");
        other.driver.switch_out();
        assert!(core.0.borrow().is_clear());
    }
}

#[test]
fn records_are_never_of_another_users_counter() {
    let core = core();
    let hosts = CounterSet::only(Counter::general(0));
    let mut host = Bank::new(Intel::new(core.clone(), description()), Policy::Direct);
    host.switch_in(hosts);
    host.write(0, MASK - 9);
    host.count(0, Some(&Event::of(What::Cycles)));
    let mut guest = Guest::sampling_on(CounterSet::first(4, 3).without(hosts), &core, (1024, 1024, 10));
    guest.cycles(500, 0x11);
    assert_eq!(guest.index(), 0, "its counter of this number is not to be had");
    assert_eq!((host.take_overflows(), host.read(0)), (1, 490));
}

#[test]
fn an_event_moves_to_its_own_counter_when_it_is_to_write_records() {
    let mut guest = Guest::new(&core(), 1024, 1024);
    guest.driver.switch_in(CounterSet(!0));
    guest.memory.0.insert(AREA + ds::GENERAL_RESET + 8, MASK - 9);
    guest.writes(&[(DS_AREA, AREA), (COUNTER + 1, MASK - 19), (SELECT + 1, CYCLES)]);
    guest.cycles(10, 0x11);
    assert_eq!((guest.index(), guest.driver.read(COUNTER + 1)), (0, Ok(MASK - 9)), "on whichever counter was free");
    guest.writes(&[(PEBS_ENABLE, 2)]);
    guest.cycles(10, 0x22);
    assert_eq!((guest.index(), guest.memory.0[&(BUFFER + 16)]), (32, 2));
    guest.writes(&[(PEBS_ENABLE, 0)]);
    guest.driver.switch_out();
    guest.writes(&[(PEBS_ENABLE, 2)]);
    guest.driver.switch_in(CounterSet(!0));
    guest.cycles(10, 0x33);
    assert_eq!((guest.index(), guest.memory.0[&(BUFFER + 48)]), (64, 2), "also if it is notified while it is away");
}
