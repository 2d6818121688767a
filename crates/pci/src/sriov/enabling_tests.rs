// SPDX-License-Identifier: MIT OR Apache-2.0
//! Virtual functions that are enabled, on a model of a physical function. Its registers may lie.

use std::vec::Vec;

use proptest::prelude::*;

use super::{Sizes, disable};
use crate::reset::{self, Procedure, Progress};
use crate::sizing::sizes;
use crate::sriov::overlay::WithVirtual;
use crate::sriov::{Unusable, VirtualFunctions};
use crate::testing::{Chip, Machine};
use crate::{Bdf, ConfigSpace, ConfigWrite, Filter, Function, Kind, Scan, Step, function};

const BRIDGE: &str = "00:01.0";
const CARD: &str = "01:00.0";
const AT: u16 = 0x160;
/// The bridge's window of memory is from here to [`END`].
const BEGIN: u64 = 0xfe80_0000;
const END: u64 = 0xfea0_0000;
/// The card's own range.
const OWN: (u64, u64) = (BEGIN, 0x2_0000);

fn place(text: &str) -> Bdf {
    text.parse().unwrap()
}

/// A machine with a card that has virtual functions while its control enables them.
#[derive(Clone)]
struct Lab {
    machine: Machine,
    /// The bits of its virtual base address registers that can be written.
    masks: [u32; 6],
    most: u16,
}

impl Lab {
    fn new(most: u16) -> Self {
        let mut bridge = Chip::bridge(1);
        bridge.words[8] = 0xfe90_fe80;
        bridge = bridge.with_capabilities(0x40, &[(0x40, 0x10, 0)]);
        bridge.words[0x40 / 4] |= 2 << 16;
        let mut card = Chip::new(0x8086, 0x10c9, 0x0200, 0);
        let counts = u32::from(most) << 16 | u32::from(most);
        card.extended.extend([(0x100, u32::from(AT) << 20 | 0x0001_000e), (AT, 0x0001_0010)]);
        card.extended.extend((4..0x40).step_by(4).map(|word| (AT + word, 0)));
        card.extended.extend([(AT + 0x0c, counts), (AT + 0x14, 0x0001_0001), (AT + 0x18, 0x10ca_0000)]);
        card.extended.extend([(AT + 0x1c, 0x553), (AT + 0x24, 0xc), (AT + 0x30, 0x4)]);
        let machine = Machine::with([(BRIDGE, bridge), (CARD, card)]);
        Self { machine, masks: [0xffff_c000, u32::MAX, 0, 0xffff_f000, u32::MAX, 0], most }
    }

    fn word(&mut self, offset: u16) -> &mut u32 {
        self.machine.chips.get_mut(&place(CARD)).unwrap().extended.get_mut(&(AT + offset)).unwrap()
    }

    /// The virtual functions are there as they are enabled.
    fn follow(&mut self) {
        let (control, number) = (*self.word(8), *self.word(0x10) as u16);
        let count = if control & 1 != 0 { number.min(self.most) } else { 0 };
        self.machine.chips.retain(|at, _| at.bus != 1 || at.function() == 0);
        for index in 1..=count as u8 {
            let mut chip = Chip::new(0xffff, 0xffff, 0x0200, 0);
            chip.words[0] = u32::MAX;
            chip.words[1] = 0;
            chip = chip.with_capabilities(0x40, &[(0x40, 0x10, 0)]);
            chip.words[0x44 / 4] = 1 << 28;
            chip.reset_by = Some((0x48, 1 << 15));
            self.machine.chips.insert(Bdf::of_requester(0, 0x100 + u16::from(index)), chip);
        }
    }
}

impl ConfigSpace for Lab {
    fn read(&mut self, place: Bdf, register: u16) -> u32 {
        self.machine.read(place, register)
    }

    fn now(&mut self) -> u64 {
        0
    }

    fn pause(&mut self) {}
}

impl ConfigWrite for Lab {
    fn write8(&mut self, place: Bdf, register: u16, value: u8) {
        self.machine.write8(place, register, value);
    }

    fn write16(&mut self, at: Bdf, register: u16, value: u16) {
        self.machine.write16(at, register, value);
        if at == place(CARD) && register == AT + 8 {
            self.follow();
        }
    }

    fn write32(&mut self, at: Bdf, register: u16, value: u32) {
        let bar = register.wrapping_sub(AT + 0x24) / 4;
        if at == place(CARD) && bar < 6 {
            let mask = self.masks[usize::from(bar)];
            let word = self.word(register - AT);
            *word = *word & !mask | value & mask;
        } else {
            self.machine.write32(at, register, value);
        }
    }
}

fn functions(machine: &mut Machine) -> Vec<Function> {
    let mut found = Vec::new();
    let mut scan = Scan::new(&Filter::All, 0, [0]);
    while scan.step(machine, &mut |function| found.push(function)) == Step::More {}
    found
}

fn enable(config: &mut WithVirtual<Lab>, number: u8) -> Result<Sizes, Unusable> {
    let all = functions(&mut Lab::new(8).machine);
    VirtualFunctions::enable(config, place(CARD), number, &all, &[OWN])
}

/// Returns the ranges of all virtual functions: first address and the one behind the last.
fn placed(config: &mut WithVirtual<Lab>) -> Vec<(u64, u64)> {
    let virtual_functions: Vec<Bdf> = config.of(place(CARD)).collect();
    let of = |at: Bdf| sizes(config, at).unwrap().into_iter().map(|range| (range.address, range.address + range.bytes));
    virtual_functions.into_iter().flat_map(of).collect()
}

fn are_apart(ranges: &[(u64, u64)]) -> bool {
    let mut sorted = ranges.to_vec();
    sorted.push((OWN.0, OWN.0 + OWN.1));
    sorted.sort_unstable();
    sorted.windows(2).all(|pair| pair[0].1 <= pair[1].0)
        && sorted.iter().all(|(from, to)| (BEGIN..END).contains(from) && *to <= END)
}

#[test]
fn virtual_functions_are_functions_like_others() {
    let mut config = WithVirtual::new(Lab::new(8));
    assert_eq!(enable(&mut config, 3), Ok([14, 0, 0, 12, 0, 0]));
    let all: Vec<Bdf> = config.of(place(CARD)).collect();
    assert_eq!(all, [place("01:00.1"), place("01:00.2"), place("01:00.3")]);
    assert!(!config.is_virtual(place(CARD)) && !config.is_virtual(place("01:00.4")));
    for at in all {
        assert!(config.is_virtual(at));
        let found = function::find(&mut config, at).unwrap();
        assert_eq!((found.identity.vendor, found.identity.device), (0x8086, 0x10ca));
        assert!(matches!(found.kind, Kind::Endpoint { ref bars } if bars.len() == 2), "{found:?}");
        let way = reset::way(&mut config, at, &found.capabilities).unwrap();
        let mut procedure = Procedure::begin(&mut config, at, way, &found.capabilities).unwrap();
        while procedure.step(&mut config).unwrap() != Progress::Done {}
    }
    let ranges = placed(&mut config);
    assert!(ranges.len() == 6 && are_apart(&ranges), "{ranges:x?}");
    assert_eq!(function::find(&mut config, place("01:00.4")), None);
}

#[test]
fn the_next_image_finds_them_where_they_are() {
    let mut config = WithVirtual::new(Lab::new(8));
    let sizes = enable(&mut config, 2).unwrap();
    let before = config.functions().to_vec();
    let mut next = WithVirtual::new(config.config.clone());
    let writes = next.config.machine.writes.len();
    let all = functions(&mut Lab::new(8).machine);
    let mut adopt = |number: u8| VirtualFunctions::adopt(&mut next, place(CARD), number, &all, &sizes);
    assert_eq!(adopt(3), Err(Unusable::NotEnabled));
    assert_eq!(adopt(2), Ok(()));
    assert_eq!(next.functions(), before);
    assert_eq!(next.config.machine.writes.len(), writes, "nothing is written");
    disable(&mut next, place(CARD));
    assert!(next.functions().is_empty() && *next.config.word(8) & 1 == 0);
    assert_eq!(function::find(&mut next, place("01:00.1")), None);
}

#[test]
fn what_cannot_be_enabled_is_not() {
    let refused = |mut lab: Lab, number: u8, change: fn(&mut Lab)| {
        change(&mut lab);
        let mut config = WithVirtual::new(lab);
        let result = enable(&mut config, number);
        assert!(config.functions().is_empty() && *config.config.word(8) & 1 == 0);
        result.unwrap_err()
    };
    assert_eq!(refused(Lab::new(2), 3, |_| {}), Unusable::Fewer { total: 2 });
    assert_eq!(refused(Lab::new(8), 3, |lab| *lab.word(0x14) = 1), Unusable::OneIdentifier);
    assert_eq!(refused(Lab::new(8), 3, |lab| *lab.word(0x14) = 0x100), Unusable::OneIdentifier);
    assert_eq!(refused(Lab::new(8), 3, |lab| lab.masks[0] = 0xff00_0000), Unusable::NoSpace { index: 0 });
    assert_eq!(refused(Lab::new(8), 3, |lab| lab.masks[0] = 0xffff_ff00), Unusable::Range { index: 0 });
    assert_eq!(refused(Lab::new(8), 3, |lab| lab.masks[3] = 0xf0f0_f000), Unusable::Range { index: 3 });
    let all = functions(&mut Lab::new(8).machine);
    let other = Function { place: place("01:00.7"), ..all[1].clone() };
    let mut beside = all.clone();
    beside.push(other);
    let mut config = WithVirtual::new(Lab::new(8));
    let mut enable = |all: &[Function]| VirtualFunctions::enable(&mut config, place(CARD), 3, all, &[OWN]);
    assert_eq!(enable(&beside), Err(Unusable::NotAlone(place("01:00.7"))));
    assert_eq!(enable(&all[1..]), Err(Unusable::NoBridge));
    assert!(all.len() == 2 && enable(&all).is_ok());
}

/// The layout is that of Intel's 82576.
#[test]
fn devices_other_than_0_need_a_port_that_passes_requests_to_them() {
    let far = || {
        let mut lab = Lab::new(8);
        *lab.word(0x14) = 0x0002_0080;
        lab
    };
    let mut config = WithVirtual::new(far());
    assert_eq!(enable(&mut config, 2), Err(Unusable::NoAri));
    let mut lab = far();
    let port = lab.machine.chips.get_mut(&place(BRIDGE)).unwrap();
    (port.words[0x64 / 4], port.writable[0x68 / 4]) = (1 << 5, 0xffff);
    let mut config = WithVirtual::new(lab);
    enable(&mut config, 2).unwrap();
    let all: Vec<Bdf> = config.of(place(CARD)).collect();
    assert_eq!(all, [place("01:10.0"), place("01:10.2")]);
    assert_eq!(config.config.read(place(BRIDGE), 0x68), 1 << 5);
    assert_eq!(*config.config.word(8), 0b1_1001);
}

proptest! {
    #[test]
    fn a_card_that_lies_gets_no_range_of_anothers(
        words in prop::collection::vec((1u16..16, prop_oneof![any::<u32>(), 0u32..0x1_0010]), 0..8),
        masks in any::<[u32; 6]>(),
        number in 1u8..8,
        vanishes_after in prop_oneof![4 => Just(u32::MAX), 1 => 0u32..200],
        is_as_built in any::<bool>(),
    ) {
        let mut lab = Lab::new(8);
        words.into_iter().filter(|_| !is_as_built).for_each(|(word, value)| *lab.word(word * 4) = value);
        if !is_as_built {
            lab.masks = masks;
        }
        lab.machine.chips.get_mut(&place(CARD)).unwrap().vanishes_after = vanishes_after;
        let mut config = WithVirtual::new(lab);
        match enable(&mut config, number) {
            Ok(_) => {
                let places: Vec<Bdf> = config.of(place(CARD)).collect();
                prop_assert_eq!(places.len(), usize::from(number));
                prop_assert!(places.iter().all(|at| at.bus == 1 && *at != place(CARD)));
                let all = config.functions().to_vec();
                let mut ranges = Vec::new();
                for function in all {
                    for (index, bar) in function.bars.iter().enumerate() {
                        let writable = u64::from(function.writable[index]);
                        if writable & 0xffff_fff0 != 0 && bar & 0xf != 0 && *bar & !0xf != 0 {
                            let bytes = (writable ^ 0xffff_ffff) + 1;
                            ranges.push((u64::from(bar & !0xf), u64::from(bar & !0xf) + bytes));
                        }
                    }
                }
                prop_assert!(!is_as_built || ranges.len() == 2 * usize::from(number));
                prop_assert!(!is_as_built || are_apart(&ranges), "{:x?}", ranges);
            }
            Err(_) => prop_assert!(config.functions().is_empty()),
        }
        disable(&mut config, place(CARD));
        prop_assert!(config.functions().is_empty());
    }
}
