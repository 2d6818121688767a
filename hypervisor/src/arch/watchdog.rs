// SPDX-License-Identifier: MIT OR Apache-2.0
//! The HPET's timer that gets the boot processor back from an image on trial ([`bringup::watchdog`]), and the input of
//! an I/O APIC that makes an NMI of its interrupt. For the boot processor alone. While no image is on trial it is a
//! profile's clock ([`super::sampling`]).

use core::sync::atomic::{AtomicU64, Ordering};

use bringup::watchdog::{self, Registers, Watchdog};
use spin::Once;

use super::ioapic::IoApic;
use super::timer::{self, HPET_MAPPED_AT};
use super::{apic, cpu, percpu};

/// The most that an I/O APIC's entry can name.
const LAST_APIC_ID: u32 = 0xfe;
/// An NMI may come so long after it was sent: a processor of an emulator waits for a core meanwhile.
const LATEST_NMI_US: u64 = 1_000_000;

/// Which timer, and the I/O APIC and its input; `None` where there is no way.
static CHOSEN: Once<Option<(Watchdog, IoApic, u32)>> = Once::new();
/// Until when an NMI may be one that this image has sent, in ticks.
static NMI_UNTIL: AtomicU64 = AtomicU64::new(0);

/// The time for which it was armed last, in microseconds; 0 while it is not armed.
static ARMED_US: AtomicU64 = AtomicU64::new(0);

/// The HPET, mapped at its place.
struct Hpet;

impl Registers for Hpet {
    fn read(&self, offset: u32) -> u32 {
        // SAFETY: whoever calls knows that there is an HPET; its page is mapped uncached there, and reading has no side
        // effect.
        unsafe { core::ptr::read_volatile((HPET_MAPPED_AT + u64::from(offset)) as *const u32) }
    }

    fn write(&self, offset: u32, value: u32) {
        // SAFETY: as in `read`; only this file writes a timer's registers, and [`timer`] none.
        unsafe { core::ptr::write_volatile((HPET_MAPPED_AT + u64::from(offset)) as *mut u32, value) };
    }
}

/// Looks for a way, once: `input_of` says which I/O APIC has a global interrupt, at which input, unless somebody uses
/// it. `has_hpet`: the HPET's page is mapped. Says whether there is one.
pub fn prepare(has_hpet: bool, input_of: impl Fn(u32) -> Option<(usize, u32)>) -> bool {
    let chosen = CHOSEN.call_once(|| {
        if !has_hpet || apic::id() > LAST_APIC_ID {
            return None;
        }
        let watchdog = Watchdog::choose(&Hpet, |gsi| input_of(gsi).is_some())?;
        let (number, input) = input_of(watchdog.input())?;
        IoApic::mapped(number).route_nmi(input, apic::id());
        Some((watchdog, IoApic::mapped(number), input))
    });
    chosen.is_some()
}

/// An NMI comes to the boot processor after so long, unless [`disarm`] comes before. Nothing where there is no way.
pub fn arm(us: u64) {
    if let Some(Some((watchdog, chip, input))) = CHOSEN.get() {
        expect_nmi(us);
        ARMED_US.store(us, Ordering::Release);
        chip.let_nmi(*input, true);
        watchdog.arm(&Hpet, us);
    }
}

/// As [`arm`], from the handler of the one that came.
pub fn arm_again(us: u64) {
    if let Some(Some((watchdog, ..))) = CHOSEN.get() {
        watchdog.arm(&Hpet, us);
    }
}

/// The host ends: an NMI comes to the calling processor after so long, and again after each [`arm_again`]. Nothing
/// where there is no way or it was never looked for.
pub fn watch_the_end(us: u64) {
    let Some(Some((watchdog, chip, input))) = CHOSEN.get() else { return };
    if apic::id() <= LAST_APIC_ID {
        chip.route_nmi(*input, apic::id());
        chip.let_nmi(*input, true);
        watchdog.arm(&Hpet, us);
    }
}

/// It comes no more, but for one that is on its way.
pub fn disarm() {
    ARMED_US.store(0, Ordering::Release);
    if let Some(Some((watchdog, chip, input))) = CHOSEN.get() {
        watchdog.disarm(&Hpet);
        chip.let_nmi(*input, false);
        expect_nmi(0);
    }
}

/// In an image that has taken over: whatever the image before has armed comes no more, but for one that is on its way.
pub fn silence(has_hpet: bool, io_apics: usize) {
    if has_hpet {
        watchdog::silence(&Hpet);
    }
    (0..io_apics).for_each(|number| IoApic::mapped(number).mask_nmis());
    expect_nmi(0);
}

/// From now on, and for so long, an NMI may be one that this image has sent.
pub fn expect_nmi(us: u64) {
    NMI_UNTIL.store(cpu::tsc() + timer::us_to_ticks(us + LATEST_NMI_US), Ordering::Release);
}

/// Whether an NMI may be one that this image has sent. For its handler: while the watchdog is armed it goes off again
/// after as long, since this NMI may have come right before the CPU went to an image on trial, which would then hang
/// unwatched.
pub fn takes_nmi() -> bool {
    let us = ARMED_US.load(Ordering::Acquire);
    if us != 0 && percpu::number() == Some(percpu::BOOT_PROCESSOR) {
        expect_nmi(us);
        arm_again(us);
    }
    cpu::tsc() < NMI_UNTIL.load(Ordering::Acquire)
}
