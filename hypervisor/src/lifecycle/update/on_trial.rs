// SPDX-License-Identifier: MIT OR Apache-2.0
//! This image on trial: it makes everything that it will need, in memory of its own, while the old image runs the
//! guests.
//!
//! It has the boot CPU for short stretches, and every interrupt takes it away ([`crate::arch::switch_pages::trial`]).
//! It touches no device, and what it logs waits in its ring. An exception is the old image's to report, a panic is
//! reported to it.

use ::boot::BootInfo;
use ::boot::options::Options;
use ::update::trial::{Stamp, TrialPage, word};
use alloc::string::String;
use alloc::vec::Vec;
use units::PhysAddr;

use super::{adoption, arriving, picture};
use crate::arch::percpu::{BOOT_CPU, PerCpu};
use crate::arch::switch_pages::trial;
use crate::arch::{boot, cpu, fault, smp, stack, trap};
use crate::guests::control_keys;
use crate::guests::pci::assignments;
use crate::kernel::console;
use crate::kernel::cpus;
use crate::kernel::inherited;
use crate::kernel::platform::{keep_boot, parse_options};
use crate::kernel::trial_pages::{note_page, page, page_of};
use crate::kernel::{address_space, clock};
use crate::lifecycle::boot_bundle;
use crate::lifecycle::end;

/// The first act of an image on trial.
pub fn prepare(record: PhysAddr, page: u64, entered_at: u64) -> ! {
    picture::note_entered(entered_at);
    note_page(BOOT_CPU, page);
    boot::mark_stack_end();
    trap::prepare_gates();
    let (info, options) = read_record(record);
    fault::point!(crate::lifecycle::faults::update::begin());
    build_memory(&info, &options);
    keep_boot(info, options);
    match stack::new_stack() {
        Ok(top) => stack::continue_on(top, on_own_stack),
        Err(error) => panic!("no stack for the boot CPU: {error:?}"),
    }
}

/// Reads the record, once and for all. Apart, because it passes through large values on a small stack.
#[inline(never)]
fn read_record(record: PhysAddr) -> (BootInfo, Options) {
    let info = inherited::take_over(record).unwrap_or_else(|error| panic!("the hand-over record: {error}"));
    let (options, _) = parse_options(&info.command_line);
    (info, options)
}

#[inline(never)]
fn build_memory(info: &BootInfo, options: &Options) {
    if let Some(version) = inherited::record().map(|record| record.switch_pages.mailbox_version.get()) {
        let newest = ::update::trial::VERSION;
        assert!(
            version <= newest,
            "the pages between the images have version {version}, known are those up to {newest}"
        );
    }
    let (staging_memory, switch_pages) =
        inherited::on_trial().unwrap_or_else(|error| panic!("the hand-over record: {error}"));
    console::start_silently(options.log);
    end::set_action(options.panic);
    address_space::build_memory_on_trial(info, options, staging_memory, switch_pages);
}

extern "C" fn on_own_stack() -> ! {
    assert!(boot::is_stack_end_intact(), "the boot stack is too small");
    let members: Vec<(u32, u32)> = inherited::members().map(|(index, apic_id, _)| (index, apic_id)).collect();
    clock::note_power_off();
    cpus::detect_virtualization();
    cpus::adopt_running(&members).unwrap_or_else(|problem| panic!("{problem}"));
    trap::use_interrupt_stacks();
    PerCpu::install(BOOT_CPU, members.first().map_or(0, |(_, apic_id)| *apic_id));
    assignments::adopt();
    control_keys::adopt();
    boot_bundle::open_bundle(boot_bundle::find_bundle(), adoption::place_vcpus);
    let page = page().unwrap_or_else(|| panic!("the boot CPU has no page"));
    adopt_guests(page).unwrap_or_else(|problem| panic!("{problem}"));
    lay_out_cpus();
    let top = stack::new_stack().unwrap_or_else(|error| panic!("no stack for the boot CPU: {error:?}"));
    fault::point!(crate::lifecycle::faults::update::prepared());
    // From here on no interrupt returns this CPU: it is lent next for the blackout.
    cpu::mask_interrupts();
    trial::speak(word::PREPARED, 0);
    stack::continue_on(top, enter_first)
}

/// Readies the guests that are handed over, for all CPUs, and rehearses restoring them.
///
/// # Errors
/// The first problem, by guest.
fn adopt_guests(page: &TrialPage) -> Result<(), String> {
    let Some(virt) = cpus::virt() else { return Ok(()) };
    adoption::adopt_guests(virt)?;
    adoption::verify()?;
    adoption::carriers().try_for_each(|index| arriving::rehearse(virt, index, page))
}

/// The boot CPU's first code in the blackout, on a stack on which nothing is left of its preparation.
extern "C" fn enter_first() -> ! {
    enter(u64::from(BOOT_CPU))
}

/// Each other CPU's first registers in this image.
fn lay_out_cpus() {
    let Ok((_, switch_pages)) = inherited::on_trial() else { return };
    for (index, _, page) in inherited::members().filter(|(index, ..)| *index != BOOT_CPU) {
        let Some(page) = trial::let_begin(switch_pages, page, enter, index, smp::stack_of(index)) else {
            panic!("the page of CPU {index} is not in the switch pages");
        };
        note_page(index, page as *const TrialPage as u64);
    }
}

/// The first safe code on each CPU in the blackout, interrupts off.
extern "C" fn enter(index: u64) -> ! {
    let index = index as u32;
    if index != BOOT_CPU {
        PerCpu::install(index, cpus::apic_id(index).unwrap_or(0));
    }
    let Some(page) = page_of(index) else { cpu::halt_forever() };
    page.stamp(Stamp::Arrived, cpu::tsc());
    fault::point!(crate::lifecycle::faults::update::arrived(index));
    cpus::take_over(index, page)
}
