// SPDX-License-Identifier: MIT OR Apache-2.0
//! Performance counters of the CPU (a model's) for guests: theirs while they are switched in, and no user's afterwards.

use std::cell::RefCell;
use std::thread_local;

use pmu::amd::Description;
use pmu::guest::{Config, Filter, Vendor};
use pmu::{Msrs as _, Policy, Registers, Source};
use sim::pmu::{AmdPmu, Generation, Run};

use super::*;

const SELECT: u32 = 0xc001_0200;
const COUNTER: u32 = 0xc001_0201;
/// x2APIC: the local vector of the counters.
const LOCAL_VECTOR: u32 = 0x834;
const VECTOR: u64 = 0x55;
/// Cycles, all modes, interrupt, enabled.
const CYCLES: u64 = 0x0053_0076;

thread_local! {
    static MODEL: RefCell<AmdPmu> = RefCell::new(AmdPmu::new(Generation::Global));
}

fn model<T>(act: impl FnOnce(&mut AmdPmu) -> T) -> T {
    MODEL.with_borrow_mut(act)
}

fn run(cycles: u64, is_guest: bool) {
    model(|model| model.run(&Run { cycles, is_guest, ..Run::default() }));
}

fn lab(vendor: Vendor) -> Lab {
    let registers = Registers {
        read: |number| model(|model| model.read(number)),
        write: |number, value| model(|model| model.write(number, value)),
    };
    let (ecx, eax, ebx) = model(|model| model.cpuid());
    let source = Source::Amd(registers, Description::from_cpuid(ecx, eax, ebx, 0x19));
    let mut lab = Lab::new();
    lab.machine.cpuid.show_counters(vendor);
    lab.cpu.set_counters(&Config { vendor, policy: Policy::Direct, filter: Filter::ALL }, source);
    lab
}

impl Lab {
    fn comes(&mut self) {
        self.cpu.switch_counters_in(&self.vcpu);
    }

    fn goes(&mut self) {
        self.cpu.switch_counters_out(&self.vcpu);
    }

    /// It writes a register whereupon counters count that did not.
    fn counts_from(&mut self, number: u32, value: u64) {
        self.vcpu.gprs[Gpr::Rcx as usize] = number.into();
        self.vcpu.gprs[Gpr::Rax as usize] = value & 0xffff_ffff;
        self.vcpu.gprs[Gpr::Rdx as usize] = value >> 32;
        self.at(&[0x0f, 0x30]);
        assert_eq!(self.handle(Exit::MsrWrite), Outcome::CountsOtherwise);
    }

    /// An AMD guest, switched in, with a first counter that overflows after so many cycles.
    fn close(left: u64) -> Self {
        let mut lab = lab(Vendor::Amd);
        lab.comes();
        lab.set_interrupts(true);
        lab.wrmsr(LOCAL_VECTOR, VECTOR).unwrap();
        lab.wrmsr(COUNTER, (1 << 48) - left).unwrap();
        lab.counts_from(SELECT, CYCLES);
        lab
    }
}

#[test]
fn a_cpus_counters_are_a_guests_while_it_is_switched_in() {
    let mut lab = lab(Vendor::Amd);
    assert!(model(|model| model.is_clear()));
    lab.comes();
    lab.counts_from(SELECT, CYCLES);
    run(1000, true);
    run(300, false);
    assert_eq!(lab.rdmsr(COUNTER), Ok(1000), "the host's time is not in it");
    lab.goes();
    assert!(model(|model| model.is_clear()), "nothing is left");
    run(50, true);
    lab.comes();
    run(7, true);
    assert_eq!(lab.rdmsr(COUNTER), Ok(1007));
}

#[test]
fn no_alarm_is_set_for_an_overflow_that_interrupts_by_itself() {
    let mut lab = Lab::close(1000);
    assert_eq!(lab.host.alarm, None);
    run(1000, true);
    assert_eq!(model(|model| model.interrupts), 1);
    lab.context().raise_overflows();
    assert_eq!(lab.take_interrupt(), Some(VECTOR as u8));
}

#[test]
fn a_read_from_outside_takes_no_overflow_away() {
    let mut lab = Lab::close(1000);
    run(1500, true);
    let views = lab.cpu.counter_views(0);
    assert_eq!((views.len(), views[0].value, views[0].overflows), (1, 500, 1));
    assert_eq!((lab.take_interrupt(), lab.rdmsr(0xc000_0300)), (Some(VECTOR as u8), Ok(1)));
}

#[test]
fn a_restored_guest_touches_no_counter_before_its_turn() {
    let mut before = Lab::close(1000);
    run(400, true);
    before.goes();
    let mut saved = <handover::state::Vcpu as zerocopy::FromZeros>::new_zeroed();
    before.machine.save_vcpu(&before.vcpu, &before.cpu, &mut saved);
    let mut next = lab(Vendor::Amd);
    next.machine.restore_vcpu(&saved, &mut next.vcpu, &mut next.cpu).expect("good");
    assert!(model(|model| model.is_clear()), "they may be another's");
    next.comes();
    run(100, true);
    assert_eq!(next.rdmsr(COUNTER), Ok((1 << 48) - 500));
}

/// The kernel's handler waits for it, and reads nothing before: its counters are frozen.
#[test]
fn an_overflow_that_freezes_right_before_a_switch_interrupts() {
    let mut lab = lab(Vendor::Intel);
    lab.comes();
    lab.set_interrupts(true);
    lab.wrmsr(LOCAL_VECTOR, VECTOR).unwrap();
    lab.wrmsr(0x1d9, 1 << 12).unwrap();
    lab.wrmsr(0x4c1, (1 << 48) - 10).unwrap();
    lab.counts_from(0x186, 0x0053_003c);
    run(10, true);
    lab.goes();
    assert_eq!(lab.take_interrupt(), Some(VECTOR as u8));
}
