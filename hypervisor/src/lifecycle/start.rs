// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the loader's hand-over to a host that can run guests.

use klog::Level;

use crate::arch::boot::{BootMemory, Source};
use crate::arch::memory::FRAMES;
use crate::arch::percpu::{BOOT_CPU, PerCpu};
use crate::arch::{apic, cpu, descriptor, fault, image, stack, strays, timer, trap};
use crate::guests::control_keys;
use crate::guests::pci::{self, assignments};
use crate::kernel::cpus::{self, Others};
use crate::kernel::platform::{keep_boot, parse_options};
use crate::kernel::timeline::{self, Name};
use crate::kernel::{address_space, clock, console, inherited, interrupts};
use crate::lifecycle::restart::successor;
use crate::lifecycle::update::on_trial;
use crate::lifecycle::{boot_bundle, end, measure};

/// Boots the host; ends in the loop of the boot CPU. The image's first instruction was at `entered_at`.
pub fn start(source: Source, entered_at: u64) -> ! {
    trap::prepare();
    let reading = timeline::span(Name::StartInfo, 0);
    let info = match source {
        Source::Loader { protocol, start_info } => {
            timer::start_at(entered_at);
            boot::loader::parse(&BootMemory, protocol, start_info).unwrap_or_else(|error| give_up(&error))
        }
        Source::Predecessor { record } => inherited::take_over(record).unwrap_or_else(|error| give_up(&error)),
        Source::Judge { record, page } => on_trial::prepare(record, page, entered_at),
    };
    let (options, complaints) = parse_options(&info.command_line);
    drop(reading);
    timeline::entered(entered_at, inherited::generation());
    let opening = timeline::span(Name::Console, 0);
    console::start(options.log, options.console);
    drop(opening);
    end::set_action(options.panic);
    let place = image::frames().start();
    log::info!("Baton {} starts at {place}, {}", env!("CARGO_PKG_VERSION"), info.protocol);
    fault::point!(log::info!("this image has fault points: it is for tests"));
    inherited::announce();
    complaints.kept().iter().for_each(|complaint| log::warn!("{complaint}"));
    if complaints.more() > 0 {
        log::warn!("{} more options could not be used", complaints.more());
    }
    info.notes().iter().for_each(|note| log::warn!("{note}"));
    cpus::reset_others(&options);
    address_space::build_memory(&info, &options);
    end::previous::collect();
    let free = units::ByteSize(FRAMES.lock().free_bytes());
    log::info!("memory: {} usable, {free} free", units::ByteSize(info.memory_map.usable_bytes()));
    let ringing = timeline::span(Name::Log, 0);
    console::log::add_ring(BOOT_CPU, options.log_buffer.boot_bytes());
    successor::take_events();
    drop(ringing);
    keep_boot(info.clone(), options);
    match stack::new_stack() {
        Ok(top) => stack::continue_on(top, on_own_stack),
        Err(error) => panic!("no stack for the boot CPU: {error:?}"),
    }
}

/// There is nothing to boot with.
fn give_up(error: &dyn core::fmt::Display) -> ! {
    console::start(Level::Info, console::BEFORE_OPTIONS);
    log::error!("cannot boot: {error}");
    cpu::halt_forever()
}

extern "C" fn on_own_stack() -> ! {
    stack::give_back_boot_memory();
    let preparing = timeline::span(Name::OwnData, 0);
    apic::enable();
    if !cpus::prepare_cpu(BOOT_CPU, apic::id()) {
        panic!("no memory for the boot CPU's own data; give the machine more memory");
    }
    descriptor::load(BOOT_CPU);
    PerCpu::install(BOOT_CPU, apic::id());
    trap::use_interrupt_stacks();
    drop(preparing);
    clock::start_clock();
    // The others are ordered to start as soon as they can be, and waited for when there is nothing else left to do.
    let mut others = Others::kick();
    interrupts::quiet_interrupts();
    // For the host's end, at which nothing may wait for a lock.
    interrupts::prepare_watchdog();
    // Interrupts that the APIC still held for the software that had the machine before.
    cpu::take_pending_interrupts();
    strays::host_is_up();
    fault::point!(crate::lifecycle::faults::run_self_tests());
    measure::begin();
    cpus::detect_virtualization();
    others.tend();
    pci::take_iommus_over();
    interrupts::route_again();
    pci::probe_before_guests(|| others.tend());
    interrupts::route_control_channel();
    others.tend();
    let found = boot_bundle::find_bundle();
    others.tend();
    others.wait();
    assignments::adopt();
    control_keys::adopt();
    successor::give_back(&cpus::online_apic_ids());
    // Those of an update are opened on trial.
    boot_bundle::open_bundle(found, |_| {});
    console::run(interrupts::route_console());
    cpus::join()
}
