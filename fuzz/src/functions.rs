// SPDX-License-Identifier: MIT OR Apache-2.0
//! PCI functions that state anything, and change their minds.

use pci::address::{Bdf, EcamRange, Route, route};
use pci::sriov::VirtualFunctions;
use pci::{ConfigSpace, Filter, Function, Scan, Step};

use crate::input::Input;

/// Most steps a walk takes: each place once, and the asks of the few functions that are there.
const MOST_STEPS: usize = 256 * 32 * 8 + 40_000;

/// Configuration space: reads return the input while there is some, and all ones after that.
struct UntrustedSpace<'a> {
    input: Input<'a>,
    accesses: u32,
    pauses: u32,
    /// A function has no registers that may be read from here on.
    end: u16,
}

impl ConfigSpace for UntrustedSpace<'_> {
    fn read(&mut self, _: Bdf, register: u16) -> u32 {
        assert!(
            register.is_multiple_of(4) && register < self.end,
            "a register of four bytes in the part that may be read"
        );
        self.accesses += 1;
        match (self.input.is_empty(), self.input.u8() % 8, register) {
            (true, ..) => u32::MAX,
            // A function with a header of either kind, more than one to a device, and a list.
            (_, 0..=4, 0) => 0x100e_8086,
            (_, 5, 0) => 0xffff_0001,
            (_, 0..=4, 4) => 0x0010_0007,
            (_, kind @ 0..=4, 0xc) => [0x80_0000, 0x81_0000, 0x01_0000, 0, 0x7f_0000][usize::from(kind)],
            // SR-IOV, as the first extended capability.
            (_, 0..=4, 0x100) => 0x0001_0010,
            (_, 0..=4, 0x18) => u32::from(self.input.u8()) << 8 | u32::from(self.input.u8() & 3) << 8,
            _ => self.input.u32(),
        }
    }

    fn now(&mut self) -> u64 {
        u64::from(self.accesses)
    }

    fn pause(&mut self) {
        self.pauses += 1;
    }
}

/// Any filter, and a walk by it: it ends, every access is counted, no step is longer than one function's registers.
pub fn pci(data: &[u8]) {
    let mut input = Input(data);
    let text = String::from_utf8_lossy(input.string()).into_owned();
    let filter = text.parse::<Filter>().unwrap_or_else(|error| {
        drop(error.to_string());
        [Filter::All, "allow:class:02,00:03.0".parse().expect("a filter")][data.len() % 2].clone()
    });
    let range = EcamRange { base: input.u64(), segment: 0, first_bus: input.u8(), last_bus: input.u8() };
    check_route(range, input.u8(), input.u16());
    let mut scan = Scan::new(&filter, 0, [0, input.u8()]);
    let mut space = UntrustedSpace { input, accesses: 0, pauses: 0, end: 0x100 };
    let (mut found, mut functions) = (0, Vec::new());
    for step in 0.. {
        assert!(step < MOST_STEPS, "the walk ends");
        let (accesses, pauses) = (space.accesses, space.pauses);
        let is_done = scan.step(&mut space, &mut |function| {
            assert!(filter.allows(function.place, &function.identity));
            function.problems.iter().for_each(|problem| drop(problem.to_string()));
            found += function.cost.accesses;
            functions.push(function);
        }) == Step::Done;
        assert!(space.accesses - accesses <= 80 && space.pauses - pauses <= 1, "a step is short");
        if is_done {
            break;
        }
    }
    assert_eq!(scan.cost().accesses, space.accesses, "every access is counted");
    assert!(found <= space.accesses, "functions cost no more than all together");
    functions.iter().take(8).for_each(|function| check_virtual(data, function, &functions));
}

/// Virtual functions have places that no function has.
fn check_virtual(data: &[u8], function: &Function, all: &[Function]) {
    let mut space = UntrustedSpace { input: Input(data), accesses: 0, pauses: 0, end: 0x1000 };
    let read = VirtualFunctions::read(&mut space, function.place);
    assert!(space.accesses <= 60, "a capability is read in few accesses");
    match read.map(|read| read.and_then(|read| Ok((read, read.places(function.place, all)?)))) {
        None => {}
        Some(Err(problem)) => drop(problem.to_string()),
        Some(Ok((read, places))) => {
            assert!(places.start() <= places.end() && *places.start() > function.place);
            let is_taken = all.iter().any(|other| other.place == *places.start() || other.place == *places.end());
            assert!(!is_taken && read.total > 0);
        }
    }
}

/// A register that memory shows lies within the range.
fn check_route(range: EcamRange, bus: u8, register: u16) {
    let Some((start, end)) = range.addresses() else { return };
    let Some(place) = Bdf::new(0, bus, 31, 7) else { return };
    if let Some(Route::Memory { offset, .. }) = route(&[range], place, register) {
        assert!(offset + 4 <= end - start);
    }
}
