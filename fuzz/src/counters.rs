// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's performance counters: any accesses, time, switches, and a way to the next image.

use pmu::guest::{Config, Filter, Vendor, VirtualPmu};
use pmu::soft::Soft;
use pmu::{CounterSet, Policy};

use crate::input::Input;

/// Both policies see the same accesses, and no guest can report them apart.
pub fn counters(data: &[u8]) {
    let mut input = Input(data);
    let vendor = if input.bool() { Vendor::Intel } else { Vendor::Amd };
    let mut filter = Filter::ALL;
    if input.bool() {
        filter = Filter::NONE;
        (0..input.u8() & 31).for_each(|_| filter.allow(input.u16() & 0xfff, input.u8()));
    }
    let configs = [Policy::Direct, Policy::Reprogram].map(|policy| Config { vendor, policy, filter });
    let mut guests = configs.map(|config| opened(VirtualPmu::new(&config, Soft::new(0)), 0));
    let mut ticks = 0_u64;
    while !input.is_empty() {
        let (what, number, value) = (input.u8(), register(&mut input), input.number());
        ticks = ticks.saturating_add(u64::from(input.u16()));
        match what & 15 {
            0 => guests.iter_mut().for_each(|guest| {
                guest.switch_out(ticks);
                guest.switch_in(CounterSet(!0), ticks);
            }),
            1 => guests = [0, 1].map(|at| carried(&guests[at], &configs[at], ticks)),
            2..=8 => same(&mut guests, |guest| guest.write(number, value, ticks)),
            9 => same(&mut guests, |guest| guest.read_counter(number, ticks)),
            10 => ticks = ticks.saturating_add(value >> 20),
            _ => same(&mut guests, |guest| guest.read(number, ticks)),
        }
        same(&mut guests, |guest| guest.take_interrupt());
        same(&mut guests, |guest| guest.ticks_to_overflow());
    }
    let [one, other] = guests.map(|guest| guest.state(ticks));
    assert_eq!(one, other);
}

fn opened(mut guest: VirtualPmu<Soft>, ticks: u64) -> VirtualPmu<Soft> {
    guest.switch_in(CounterSet(!0), ticks);
    guest
}

/// In the next image, where its time goes on.
fn carried(guest: &VirtualPmu<Soft>, config: &Config, ticks: u64) -> VirtualPmu<Soft> {
    let state = guest.state(ticks);
    let next = VirtualPmu::from_state(config, Soft::new(ticks), &state).expect("it was reached");
    let next = opened(next, ticks);
    assert_eq!(next.state(ticks), state);
    next
}

fn same<T: PartialEq + std::fmt::Debug>(guests: &mut [VirtualPmu<Soft>; 2], act: impl Fn(&mut VirtualPmu<Soft>) -> T) {
    let [one, other] = guests.each_mut().map(act);
    assert_eq!(one, other);
}

/// One of either vendor's, or any.
fn register(input: &mut Input<'_>) -> u32 {
    const FIRST: [u32; 9] = [0xc1, 0x186, 0x309, 0x38d, 0x4c1, 0x1d9, 0xc001_0000, 0xc001_0200, 0xc000_0300];
    match input.u8() {
        0xff => input.u32(),
        number => FIRST[usize::from(number) % FIRST.len()] + u32::from(number >> 4),
    }
}
