// SPDX-License-Identifier: MIT OR Apache-2.0
//! The HPET's timer that gets the boot CPU back from an image on trial ([`bringup::watchdog`]), and the input of
//! an I/O APIC that makes an NMI of its interrupt. For the boot CPU alone. While no image is on trial it is a
//! profile's clock ([`super::sampling`]).

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ::update::nmi::ExpectedNmis;
use bringup::watchdog::{self, Registers, Watchdog};
use iommu::{Redirection, Signal, Spare};
use spin::Once;

use super::ioapic::IoApic;
use super::iommu::SpareEntry;
use super::timer::HPET_MAPPED_AT;
use super::tsc::Tsc;
use super::{apic, percpu};

/// The most that an I/O APIC's entry can name.
const LAST_APIC_ID: u32 = 0xfe;

/// The timer, the number of the I/O APIC and its input; `None` where there is no way.
static CHOSEN: Once<Option<(Watchdog, usize, u32)>> = Once::new();
/// The input's entry, in which it is not masked.
static ENTRY: AtomicU64 = AtomicU64::new(0);
/// The input is not masked.
static IS_OPEN: AtomicBool = AtomicBool::new(false);
/// The message that sends its interrupts when the host ends, where interrupts are remapped.
static SPARE: SpareEntry = SpareEntry::none();
/// The NMIs that this image has sent, or had sent.
static EXPECTED: ExpectedNmis = ExpectedNmis::new();

/// The HPET, mapped at its place.
struct Hpet;

impl Registers for Hpet {
    fn read(&self, offset: u32) -> u32 {
        // SAFETY: the caller knows that there is an HPET; its page is mapped uncached there, and reading has no side
        // effect.
        unsafe { core::ptr::read_volatile((HPET_MAPPED_AT + u64::from(offset)) as *const u32) }
    }

    fn write(&self, offset: u32, value: u32) {
        // SAFETY: as in `read`; only this file writes a timer's registers, and [`timer`] none.
        unsafe { core::ptr::write_volatile((HPET_MAPPED_AT + u64::from(offset)) as *mut u32, value) };
    }
}

/// Searches for a way, once: `input_of` returns the I/O APIC and input of a global interrupt, unless the input is in
/// use. `has_hpet`: the HPET's page is mapped. Returns whether there is one; [`set_entry`] follows where it is new.
pub fn prepare(has_hpet: bool, input_of: impl Fn(u32) -> Option<(usize, u32)>) -> bool {
    let chosen = CHOSEN.call_once(|| {
        if !has_hpet || apic::id() > LAST_APIC_ID {
            return None;
        }
        let watchdog = Watchdog::choose(&Hpet, |gsi| input_of(gsi).is_some())?;
        let (number, input) = input_of(watchdog.input())?;
        Some((watchdog, number, input))
    });
    chosen.is_some()
}

/// The number of the I/O APIC and the input, once there is one.
pub fn input() -> Option<(usize, u32)> {
    CHOSEN.get().copied().flatten().map(|(_, chip, input)| (chip, input))
}

/// Returns whether the input has its entry.
pub fn has_entry() -> bool {
    ENTRY.load(Ordering::Relaxed) != 0
}

/// The input sends NMIs by this entry, and at the end of the host by `spare` where its interrupts are remapped. It
/// stays masked or open.
pub fn set_entry(entry: Redirection, spare: Option<Spare>) {
    SPARE.keep(spare);
    ENTRY.store(entry.0, Ordering::Relaxed);
    open_input(IS_OPEN.load(Ordering::Relaxed));
}

fn open_input(is_open: bool) {
    IS_OPEN.store(is_open, Ordering::Relaxed);
    let entry = Redirection(ENTRY.load(Ordering::Relaxed));
    if let Some((chip, input)) = input() {
        IoApic::mapped(chip).set(input, if is_open { entry } else { entry.masked() });
    }
}

/// An NMI comes to the boot CPU after so long, unless [`disarm`] comes before. Nothing where there is no way.
pub fn arm(us: u64) {
    if let Some(Some((watchdog, ..))) = CHOSEN.get() {
        EXPECTED.arm(us, &Tsc);
        open_input(true);
        watchdog.arm(&Hpet, us);
    }
}

/// Arms the watchdog as [`arm`] does, from the handler of its NMI.
pub fn arm_again(us: u64) {
    if let Some(Some((watchdog, ..))) = CHOSEN.get() {
        watchdog.arm(&Hpet, us);
    }
}

/// The host ends: an NMI comes to the calling CPU after so long, and again after each [`arm_again`]. Nothing
/// where there is no way or it was never searched for.
pub fn watch_the_end(us: u64) {
    let Some(Some((watchdog, ..))) = CHOSEN.get() else { return };
    if apic::id() <= LAST_APIC_ID {
        let entry = SPARE.redirect(Signal::Nmi { destination: apic::id() }, false);
        ENTRY.store(entry.0, Ordering::Relaxed);
        IS_OPEN.store(true, Ordering::Relaxed);
        input().into_iter().for_each(|(chip, input)| IoApic::alone(chip).set(input, entry));
        watchdog.arm(&Hpet, us);
    }
}

/// Disarms the watchdog. An NMI may still be on its way.
pub fn disarm() {
    if let Some(Some((watchdog, ..))) = CHOSEN.get() {
        EXPECTED.disarm(&Tsc);
        watchdog.disarm(&Hpet);
        open_input(false);
    }
}

/// In an image that has taken over: whatever the image before has armed comes no more, but for one that is on its way.
pub fn silence(has_hpet: bool, io_apics: usize) {
    if has_hpet {
        watchdog::disable_all(&Hpet);
    }
    (0..io_apics).for_each(|number| IoApic::mapped(number).mask_nmis());
    expect_nmi();
}

/// From now on an NMI may be one that this image has sent.
pub fn expect_nmi() {
    EXPECTED.expect(&Tsc);
}

/// Returns whether an NMI may be one that this image has sent. For its handler; arms the watchdog again where it is
/// armed.
pub fn takes_nmi() -> bool {
    let claim = EXPECTED.claim(percpu::number() == Some(percpu::BOOT_CPU), &Tsc);
    claim.arm_again_us.into_iter().for_each(arm_again);
    claim.is_expected
}
