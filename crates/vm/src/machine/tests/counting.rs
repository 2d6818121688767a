// SPDX-License-Identifier: MIT OR Apache-2.0
//! Performance counters: they count the guest's time and nothing else, and interrupt when they overflow.

use pmu::guest::{Config, Filter, Vendor};
use pmu::{Policy, Source};

use super::*;

const AMD_SELECT: u32 = 0xc001_0200;
const AMD_COUNTER: u32 = 0xc001_0201;
const SELECT: u32 = 0x186;
const COUNTER: u32 = 0xc1;
const DEBUG_CONTROL: u32 = 0x1d9;
/// x2APIC: the local vector of the counters.
const LOCAL_VECTOR: u32 = 0x834;
const NMI: u64 = 4 << 8;
const MASKED: u64 = 1 << 16;
const VECTOR: u64 = 0x55;
/// Cycles, all modes, interrupt, enabled.
const CYCLES: [u64; 2] = [0x0053_003c, 0x0053_0076];

impl Lab {
    fn counting(vendor: Vendor) -> Self {
        let mut lab = Self::new();
        lab.machine.cpuid.show_counters(vendor);
        lab.cpu.set_counters(&Config { vendor, policy: Policy::Direct, filter: Filter::ALL }, Source::Soft);
        lab
    }

    /// An Intel guest with a first counter that overflows after so many ticks.
    fn near(left: u64, local_vector: u64) -> Self {
        let mut lab = Self::counting(Vendor::Intel);
        lab.wrmsr(LOCAL_VECTOR, local_vector).unwrap();
        lab.wrmsr(0x4c1, (1 << 48) - left).unwrap();
        lab.start(SELECT, CYCLES[0]);
        lab
    }

    /// Writes a register whereupon the guest's time begins or ceases to matter.
    fn start(&mut self, number: u32, value: u64) {
        self.vcpu.gprs[Gpr::Rcx as usize] = number.into();
        self.vcpu.gprs[Gpr::Rax as usize] = value & 0xffff_ffff;
        self.vcpu.gprs[Gpr::Rdx as usize] = value >> 32;
        self.at(&[0x0f, 0x30]);
        assert_eq!(self.handle(Exit::MsrWrite), Outcome::CountsOtherwise);
    }

    /// The guest runs for so many ticks, the host for as many more.
    fn runs(&mut self, guest: u64, host: u64) {
        self.vcpu.guest_ticks += guest;
        self.host.tsc += guest + host;
    }

    fn fire(&mut self) {
        self.context().raise_overflows();
        self.context().alarm();
    }

    fn rdpmc(&mut self, counter: u32) -> Result<u64, Exception> {
        self.vcpu.gprs[Gpr::Rcx as usize] = counter.into();
        self.at(&[0x0f, 0x33]);
        assert_eq!(self.handle(Exit::CounterRead), Outcome::Resume);
        self.result(2)?;
        Ok(self.vcpu.gprs[Gpr::Rdx as usize] << 32 | self.vcpu.gprs[Gpr::Rax as usize])
    }
}

#[test]
fn the_hosts_time_is_never_in_a_guests_count() {
    let mut lab = Lab::counting(Vendor::Amd);
    lab.start(AMD_SELECT, CYCLES[1]);
    assert!(lab.vcpu.time_is_counted);
    lab.runs(1000, 1_000_000);
    assert_eq!(lab.rdmsr(AMD_COUNTER), Ok(1000));
    lab.runs(10, 5);
    assert_eq!(lab.rdpmc(0), Ok(1010));
    lab.start(AMD_SELECT, 0);
    assert!(!lab.vcpu.time_is_counted, "no user asks any more");
}

#[test]
fn a_guest_without_counters_has_none_of_their_registers() {
    let mut lab = Lab::new();
    for number in [SELECT, COUNTER, 0x38f, 0x345, AMD_SELECT, 0xc000_0301] {
        assert_eq!(lab.rdmsr(number), Err(Exception::GeneralProtection(0)), "{number:#x}");
        assert_eq!(lab.wrmsr(number, 0), Err(Exception::GeneralProtection(0)), "{number:#x}");
    }
    assert_eq!((lab.rdmsr(DEBUG_CONTROL), lab.wrmsr(DEBUG_CONTROL, 0)), (Ok(0), Ok(())));
    assert_eq!(lab.wrmsr(DEBUG_CONTROL, 1), Err(Exception::GeneralProtection(0)));
    assert_eq!(lab.rdpmc(0), Err(Exception::GeneralProtection(0)));
}

#[test]
fn user_mode_reads_counters_only_where_the_kernel_lets_it() {
    let mut lab = Lab::counting(Vendor::Intel);
    lab.vcpu.cpl = 3;
    assert_eq!(lab.rdpmc(0), Err(Exception::GeneralProtection(0)));
    lab.vcpu.cr4 |= crate::vcpu::cr4::PCE;
    assert_eq!(lab.rdpmc(0), Ok(0));
    assert_eq!(lab.rdpmc(8), Err(Exception::GeneralProtection(0)), "there is no such counter");
}

#[test]
fn an_overflow_interrupts_by_vector_or_nmi_and_intels_entry_masks_itself() {
    let mut lab = Lab::near(1000, VECTOR);
    lab.set_interrupts(true);
    lab.runs(1000, 0);
    lab.fire();
    assert_eq!(lab.take_interrupt(), Some(VECTOR as u8));
    assert_eq!(lab.rdmsr(LOCAL_VECTOR), Ok(VECTOR | MASKED));
    assert_eq!(lab.rdmsr(0x38e), Ok(1));
    let mut lab = Lab::near(1000, NMI);
    lab.runs(1000, 0);
    lab.fire();
    assert_eq!(lab.enter(), Some(Event::Nmi));
}

#[test]
fn amds_entry_stays_as_it_is() {
    let mut lab = Lab::counting(Vendor::Amd);
    lab.wrmsr(LOCAL_VECTOR, NMI).unwrap();
    lab.wrmsr(AMD_COUNTER, (1 << 48) - 5).unwrap();
    lab.start(AMD_SELECT, CYCLES[1]);
    lab.runs(5, 0);
    lab.fire();
    assert_eq!(lab.enter(), Some(Event::Nmi));
    assert_eq!(lab.rdmsr(LOCAL_VECTOR), Ok(NMI));
}

#[test]
fn an_overflow_that_is_masked_is_reported_by_the_status_alone() {
    let mut lab = Lab::near(1000, VECTOR | MASKED);
    lab.set_interrupts(true);
    lab.runs(5000, 0);
    lab.fire();
    assert_eq!(lab.take_interrupt(), None);
    lab.wrmsr(LOCAL_VECTOR, VECTOR).unwrap();
    lab.runs(5000, 0);
    lab.fire();
    assert_eq!((lab.take_interrupt(), lab.rdmsr(0x38e)), (None, Ok(1)), "it does not come late");
}

#[test]
fn the_alarm_is_set_for_the_overflow_and_again_if_the_guest_was_away() {
    let mut lab = Lab::near(10_000, VECTOR);
    let late = lab.host.alarm.expect("one") - lab.host.tsc - 10_000;
    assert!(late < 1000);
    lab.runs(4000, 6000 + late);
    lab.fire();
    assert_eq!(lab.take_interrupt(), None);
    assert_eq!(lab.host.alarm, Some(lab.host.tsc + 6000 + late));
    assert_eq!(lab.cpu.next_alarm(), None, "one that sleeps counts nothing and is not woken");
}

#[test]
fn overflows_at_every_tick_are_bounded_by_the_alarm() {
    let mut lab = Lab::near(1, VECTOR);
    lab.set_interrupts(true);
    for _ in 0..100 {
        assert!(lab.host.alarm.is_some_and(|alarm| alarm > lab.host.tsc), "never in the past");
        lab.runs(700, 100);
        lab.fire();
        assert_eq!(lab.take_interrupt(), Some(VECTOR as u8));
        lab.wrmsr(EOI, 0).unwrap();
        lab.wrmsr(0x390, 1).unwrap();
        lab.wrmsr(LOCAL_VECTOR, VECTOR).unwrap();
        lab.wrmsr(0x4c1, (1 << 48) - 1).unwrap();
    }
}

#[test]
fn counts_are_handed_over_to_the_next_image_and_on() {
    let mut lab = Lab::near(10_000, VECTOR);
    lab.runs(4000, 0);
    let mut next = Lab::counting(Vendor::Intel);
    next.vcpu.guest_ticks = 77;
    let mut saved = <handover::state::Vcpu as zerocopy::FromZeros>::new_zeroed();
    lab.machine.save_vcpu(&lab.vcpu, &lab.cpu, &mut saved);
    next.machine.restore_vcpu(&saved, &mut next.vcpu, &mut next.cpu).expect("good");
    assert!(next.vcpu.time_is_counted);
    next.runs(100, 50);
    assert_eq!(next.rdpmc(0), Ok((1 << 48) - 10_000 + 4100));
    next.runs(5900, 0);
    next.set_interrupts(true);
    next.fire();
    assert_eq!(next.take_interrupt(), Some(VECTOR as u8));
}

#[test]
fn another_vendors_counters_are_refused() {
    let lab = Lab::near(10_000, VECTOR);
    let mut saved = <handover::state::Vcpu as zerocopy::FromZeros>::new_zeroed();
    lab.machine.save_vcpu(&lab.vcpu, &lab.cpu, &mut saved);
    for mut other in [Lab::counting(Vendor::Amd), Lab::new()] {
        let error = other.machine.restore_vcpu(&saved, &mut other.vcpu, &mut other.cpu).expect_err("refused");
        assert!(error.field.starts_with("pmu"), "{error:?}");
    }
    let mut other = Lab::new();
    other.machine.cpuid.show_counters(Vendor::Intel);
    assert!(other.machine.restore_vcpu(&saved, &mut other.vcpu, &mut other.cpu).is_err(), "none was set up");
}

#[test]
fn cpuid_shows_a_cpu_that_can_have_the_counters() {
    let lab = Lab::counting(Vendor::Intel);
    let leaf = |leaf| lab.machine.cpuid.lookup(leaf, 0, &crate::cpu::cpuid::CpuidView::default());
    assert_eq!([leaf(0).ebx, leaf(0).edx, leaf(0).ecx].map(u32::to_le_bytes).concat(), b"GenuineIntel");
    assert_eq!(leaf(0xa).eax, 2 | 8 << 8 | 48 << 16 | 7 << 24);
    assert_eq!((leaf(0xa).ebx, leaf(0xa).edx), (0x7e, 3 | 48 << 5), "of the events only cycles");
    let lab = Lab::counting(Vendor::Amd);
    let leaf = |leaf| lab.machine.cpuid.lookup(leaf, 0, &crate::cpu::cpuid::CpuidView::default());
    assert_eq!([leaf(0).ebx, leaf(0).edx, leaf(0).ecx].map(u32::to_le_bytes).concat(), b"AuthenticAMD");
    assert_eq!((leaf(0x8000_0000).eax, leaf(0x8000_0022).eax, leaf(0x8000_0022).ebx), (0x8000_0022, 1, 6));
    assert_eq!(leaf(1).eax, 0x00a2_0f10, "the host's own CPU is AMD's");
}

/// The event is given up after a turn in which nothing counted; the next one must find a counter all the same.
#[test]
fn a_guest_that_has_rested_for_a_turn_counts_again() {
    let mut lab = Lab::counting(Vendor::Amd);
    lab.start(AMD_SELECT, CYCLES[1]);
    lab.runs(10, 0);
    lab.start(AMD_SELECT, 0);
    for _ in 0..3 {
        lab.cpu.switch_counters_out(&lab.vcpu);
        lab.host.tsc += 1000;
        lab.cpu.switch_counters_in(&lab.vcpu);
    }
    lab.start(AMD_SELECT, CYCLES[1]);
    lab.runs(10, 0);
    assert_eq!(lab.rdmsr(AMD_COUNTER), Ok(20));
    lab.cpu.switch_counters_out(&lab.vcpu);
    lab.cpu.switch_counters_in(&lab.vcpu);
    lab.runs(10, 0);
    assert_eq!(lab.rdmsr(AMD_COUNTER), Ok(30));
}
