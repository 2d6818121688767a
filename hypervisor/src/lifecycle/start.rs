// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the loader's hand-over to a host that can run guests.

use arrayvec::ArrayVec;
use boot::BootInfo;
use boot::options::{ApicMode, MadtDamage, Options, SelfTest};
use bundle::Bundle;
use firmware::damage::{Damage, Damaged};
use firmware::power::Power;
use firmware::{Override, Tables};
use klog::Level;
use units::{PHYSICAL_LIMIT, PageSize, PhysAddr, PhysRange};

use crate::arch::address::DIRECT_MAP;
use crate::arch::apic::NotChosen;
use crate::arch::boot::{BootMemory, Source};
use crate::arch::ending;
use crate::arch::heap::{self, HEAP_BYTES};
use crate::arch::ioapic::IoApic;
use crate::arch::memory::{self, DevicePage, FRAMES};
use crate::arch::percpu::{BOOT_PROCESSOR, PerCpu};
use crate::arch::timer::{self, Reference};
use crate::arch::{apic, clock, cpu, descriptor, ioapic, power, strays, trap, watchdog};
use crate::guests::guest::{GUESTS, Guests};
use crate::guests::pci;
use crate::kernel::console;
use crate::kernel::inherited;
use crate::kernel::ledger;
use crate::kernel::platform::{BOOT, FIRMWARE};
use crate::kernel::processors;
use crate::kernel::processors::Others;
use crate::kernel::storm;
use crate::kernel::timeline::{self, Name};
use crate::lifecycle::end;
use crate::lifecycle::restart::successor;
use crate::lifecycle::selftest;
use crate::lifecycle::update::{adoption, candidate};

/// Boots the host; ends in the loop of the boot processor. The image's first instruction was at `entered_at`.
pub fn start(source: Source, entered_at: u64) -> ! {
    trap::prepare();
    let reading = timeline::span(Name::StartInfo, 0);
    let info = match source {
        Source::Loader { protocol, start_info } => {
            timer::start_at(entered_at);
            boot::loader::parse(&BootMemory, protocol, start_info).unwrap_or_else(|error| give_up(&error))
        }
        Source::Predecessor { record } => inherited::take_over(record).unwrap_or_else(|error| give_up(&error)),
        Source::Judge { record, page } => candidate::prepare(record, page, entered_at),
    };
    let (options, complaints) = Options::parse(&info.command_line);
    drop(reading);
    timeline::entered(entered_at, inherited::generation());
    let opening = timeline::span(Name::Console, 0);
    console::start(options.log, options.console);
    drop(opening);
    end::set_action(options.panic);
    let place = memory::image_frames().start();
    log::info!("Baton {} starts at {place}, {}", env!("CARGO_PKG_VERSION"), info.protocol);
    inherited::announce();
    complaints.kept().iter().for_each(|complaint| log::warn!("{complaint}"));
    if complaints.more() > 0 {
        log::warn!("{} more options could not be used", complaints.more());
    }
    info.notes().iter().for_each(|note| log::warn!("{note}"));
    processors::reset_others(&options);
    build_memory(&info, &options);
    let ringing = timeline::span(Name::Log, 0);
    console::log::add_ring(BOOT_PROCESSOR, options.log_buffer.boot_bytes());
    successor::take_events();
    drop(ringing);
    BOOT.call_once(|| (info.clone(), options));
    match memory::new_stack() {
        Ok(stack) => memory::continue_on(stack, on_own_stack),
        Err(error) => panic!("no stack for the boot processor: {error:?}"),
    }
}

/// There is nothing to boot with.
fn give_up(error: &dyn core::fmt::Display) -> ! {
    console::start(Level::Info, console::UNTOLD);
    log::error!("cannot boot: {error}");
    cpu::halt_forever()
}

fn build_memory(info: &BootInfo, options: &Options) {
    let mut tables = FIRMWARE.lock();
    read_firmware(info, options, &mut tables);
    choose_apic(options.apic);
    let has_epitaph = ledger::open(info, options, inherited::record().as_ref());
    enter_address_space(info, &tables, None);
    if has_epitaph {
        ending::allow_epitaph();
    }
    timeline::settle(inherited::timelines());
    ledger::furnish(info, options, &tables, inherited::is_update());
    end::previous::collect();
    let free = units::ByteSize(FRAMES.lock().free_bytes());
    log::info!("memory: {} usable, {free} free", units::ByteSize(info.memory_map.usable_bytes()));
}

/// The memory of an image on trial: what it was given in advance is free, nothing else. It is still on the crossing.
pub fn build_memory_on_trial(info: &BootInfo, options: &Options, advance: PhysRange, crossing: PhysRange) {
    let mut tables = FIRMWARE.lock();
    read_firmware(info, options, &mut tables);
    choose_apic(options.apic);
    ledger::open_on_trial(advance);
    enter_address_space(info, &tables, Some(crossing));
}

fn enter_address_space(info: &BootInfo, tables: &Tables, crossing: Option<PhysRange>) {
    let devices = device_pages(tables);
    let mapping = timeline::span(Name::PageTables, 0);
    if let Err(error) = memory::enter(info.memory_map.usable(), &devices, crossing) {
        panic!("the host's address space cannot be built: {error:?}; give the machine more memory");
    }
    drop(mapping);
    let _heaping = timeline::span(Name::Heap, 0);
    let heap = FRAMES.lock().allocate(HEAP_BYTES, PageSize::Kib4);
    match heap {
        Ok(range) => heap::claim(DIRECT_MAP + range.leak().start().0, HEAP_BYTES),
        Err(error) => panic!("no memory for the heap: {error}; give the machine more memory"),
    }
}

fn read_firmware(info: &BootInfo, options: &Options, tables: &mut Tables) {
    let _span = timeline::span(Name::Firmware, 0);
    let damage = options.self_tests.iter().find_map(|test| match test {
        SelfTest::Madt(MadtDamage::Missing) => Some(Damage::Missing),
        SelfTest::Madt(MadtDamage::Truncated) => Some(Damage::Truncated),
        SelfTest::Madt(MadtDamage::Duplicate) => Some(Damage::Duplicate),
        SelfTest::Madt(MadtDamage::Absurd) => Some(Damage::Absurd),
        _ => None,
    });
    let rsdp = info.rsdp.map(|address| address.0);
    let read = match damage {
        None => firmware::discover(&BootMemory, rsdp, tables),
        Some(damage) => firmware::discover(&Damaged::new(&BootMemory, damage), rsdp, tables),
    };
    if let Err(error) = read {
        log::warn!("firmware tables: {error}");
    }
    tables.check_power_registers(|address| may_be_register(info, address));
    tables.warnings.iter().for_each(|problem| log::warn!("firmware tables: {problem}"));
}

fn choose_apic(wanted: ApicMode) {
    let wanted = match wanted {
        ApicMode::Auto => None,
        ApicMode::XApic => Some(apic::Mode::Xapic),
        ApicMode::X2Apic => Some(apic::Mode::X2apic),
    };
    match apic::choose(wanted) {
        Ok(()) => {}
        Err(NotChosen::NoX2apic) => log::warn!("option apic=x2apic: this processor has none; xAPIC mode is used"),
        Err(NotChosen::X2apicIsOn) => {
            log::warn!(
                "option apic=xapic: the firmware has left x2APIC mode on; it is used, since CPUs cannot leave it"
            )
        }
    }
}

/// An image that has taken over owns all memory, but for what guests have and what is still to be read.
pub fn take_all_memory() {
    let (Some((info, options)), Ok((advance, crossing))) = (BOOT.get(), inherited::on_trial()) else { return };
    if ledger::take_all(info, options, advance, inherited::record().as_ref()) {
        ending::allow_epitaph();
    }
    memory::hide_crossing(crossing.bytes());
}

/// An image that has taken over keeps account of memory as the operator wants it.
pub fn furnish_memory() {
    let Some((info, options)) = BOOT.get() else { return };
    ledger::furnish(info, options, &FIRMWARE.lock(), inherited::is_update());
    ledger::background::guest_starts();
}

/// An image that has taken over prints the log from now on.
pub fn take_console() {
    let Some((_, options)) = BOOT.get() else { return };
    console::start(options.log, options.console);
    console::run(route_console());
}

/// A watchdog for images on trial and for the host's end; says whether there is a way for one.
pub fn prepare_watchdog() -> bool {
    let tables = FIRMWARE.lock();
    let used = [COM1_IRQ, COM2_IRQ].map(|irq| tables.isa_interrupt(irq).gsi);
    let free = |gsi| if used.contains(&gsi) { None } else { input_of(&tables, gsi) };
    watchdog::prepare(tables.hpet_address.is_some(), free)
}

/// The watchdog of the image before is this one's business no more.
pub fn silence_watchdog() {
    let tables = FIRMWARE.lock();
    watchdog::silence(tables.hpet_address.is_some(), tables.io_apics.len());
}

/// The control channel's UART interrupts this image's boot processor.
pub fn take_interrupts() {
    strays::host_is_up();
    prepare_watchdog();
    route_control_channel();
}

fn device_pages(tables: &Tables) -> ArrayVec<DevicePage, 21> {
    let mut pages = ArrayVec::new();
    pages.push((apic::MAPPED_AT, apic::physical()));
    pages.extend(tables.hpet_address.map(|address| (timer::HPET_MAPPED_AT, address)));
    pages.extend(power::pages(&Power::new(tables)));
    for (number, io_apic) in tables.io_apics.iter().enumerate() {
        pages.push((ioapic::MAPPED_AT + number as u64 * 4096, io_apic.address));
    }
    pages
}

extern "C" fn on_own_stack() -> ! {
    let preparing = timeline::span(Name::OwnData, 0);
    apic::enable();
    if !processors::prepare_processor(BOOT_PROCESSOR, apic::id()) {
        panic!("no memory for the boot processor's own data; give the machine more memory");
    }
    descriptor::load(BOOT_PROCESSOR);
    PerCpu::install(BOOT_PROCESSOR, apic::id());
    trap::use_interrupt_stacks();
    drop(preparing);
    start_clock();
    // The others are told to start as soon as they can be, and waited for when there is nothing else left to do.
    let mut others = Others::kick();
    quiet_interrupts();
    // For the host's end, at which nothing may wait for a lock.
    prepare_watchdog();
    // What the APIC still held for who had the machine before.
    cpu::take_pending_interrupts();
    strays::host_is_up();
    run_self_tests();
    processors::detect_virtualization();
    others.tend();
    pci::probe_before_guests(|| others.tend());
    route_control_channel();
    others.tend();
    let bundle = find_bundle();
    others.tend();
    others.wait();
    successor::give_back(&processors::online_apic_ids());
    open_bundle(bundle);
    console::run(route_console());
    processors::join()
}

/// The control channel's UART interrupts the boot processor, which serves it.
fn route_control_channel() {
    let line = FIRMWARE.lock().isa_interrupt(COM2_IRQ);
    if !route_to_this_processor(line, CONTROL_UART, trap::vector::CONTROL_UART) {
        log::warn!("control channel: no I/O APIC has its interrupt; it is looked at only when the host is awake");
    }
}

/// The console's UART interrupts the boot processor when it has room; says whether it does. An input that is
/// level-triggered would interrupt for as long as there is nothing to print: it is not used, and the UART is polled.
fn route_console() -> bool {
    let line = FIRMWARE.lock().isa_interrupt(COM1_IRQ);
    if line.is_level {
        note_input(line, CONSOLE_UART);
        return false;
    }
    route_to_this_processor(line, CONSOLE_UART, trap::vector::CONSOLE_UART)
}

const COM1_IRQ: u8 = 4;
const COM2_IRQ: u8 = 3;
/// COM1 and COM2, as the end of the host counts them.
const CONSOLE_UART: usize = 0;
const CONTROL_UART: usize = 1;

/// Sends a UART's interrupt to the calling processor; `false` if no I/O APIC has it.
fn route_to_this_processor(line: Override, uart: usize, vector: u8) -> bool {
    let input = note_input(line, uart);
    if let Some((number, input)) = input {
        IoApic::mapped(number).route(input, vector, apic::id(), line.is_level, line.is_active_low);
    }
    input.is_some()
}

/// Which input a UART's interrupt is; whoever owns the end of the host routes it again.
fn note_input(line: Override, uart: usize) -> Option<(usize, u32)> {
    let (number, input) = input_of(&FIRMWARE.lock(), line.gsi)?;
    ending::note_uart_input(uart, number, input, line.is_level, line.is_active_low);
    Some((number, input))
}

/// The I/O APIC that has this global interrupt, and at which input.
fn input_of(tables: &Tables, gsi: u32) -> Option<(usize, u32)> {
    tables.io_apics.iter().enumerate().find_map(|(number, io_apic)| {
        let inputs = io_apic.gsi_base..io_apic.gsi_base + IoApic::mapped(number).inputs();
        inputs.contains(&gsi).then(|| (number, gsi - io_apic.gsi_base))
    })
}

/// Finds the bundle among the loader's modules: the first one is it. Without one, or with a broken one, the host is up
/// all the same, without guests.
pub fn find_bundle() -> Option<Bundle<'static>> {
    let _span = timeline::span(Name::Bundle, 0);
    let (info, _) = BOOT.get()?;
    let Some(module) = info.modules.first() else {
        log::warn!("no bundle: the loader gave no module, so there are no guests (in QEMU: -initrd FILE)");
        return None;
    };
    match memory::module_bytes(module.range).map(Bundle::parse) {
        Some(Ok(bundle)) => return Some(bundle),
        Some(Err(error)) => log::error!("bundle refused: {error}"),
        None => log::error!("bundle refused: its memory at {} cannot be read", module.range),
    }
    None
}

pub fn open_bundle(bundle: Option<Bundle<'static>>) {
    let Some(bundle) = bundle else { return };
    let _span = timeline::span(Name::Guests, bundle.manifest().guests.len() as u32);
    let mut guests = Guests::new(bundle, &processors::threads::for_guests());
    if inherited::is_update() {
        adoption::place_vcpus(&mut guests);
    }
    log::info!("bundle: {} guests", guests.all.len());
    GUESTS.call_once(|| guests);
}

fn start_clock() {
    let _span = timeline::span(Name::Clock, 0);
    if inherited::has_clock() {
        timer::prepare_this_processor();
        log::info!("clock: TSC at {} Hz, as handed over", timer::tsc_hz());
    } else {
        measure_clock();
    }
    note_power_off();
}

/// How the machine is switched off.
pub fn note_power_off() {
    let tables = FIRMWARE.lock();
    power::note(Power::new(&tables));
}

/// Whether a power register may be at this physical address: it is no usable memory.
fn may_be_register(info: &BootInfo, address: u64) -> bool {
    let end = 1_u64 << (cpu::cpuid(0x8000_0008, 0).eax & 0x3f);
    let is_memory = info.memory_map.usable().any(|usable| usable.contains(PhysAddr(address)));
    !is_memory && address < end.min(PHYSICAL_LIMIT)
}

fn measure_clock() {
    let tables = FIRMWARE.lock();
    let hpet = tables.hpet_address.map(|_| Reference::Hpet);
    let pm_timer = tables.pm_timer.map(|timer| Reference::PmTimer(timer.port));
    match timer::calibrate(hpet.or(pm_timer)) {
        Ok((hz, source)) => log::info!("clock: TSC at {}.{:03} MHz, {source}", hz / 1_000_000, hz / 1000 % 1000),
        Err(_) => panic!("no clock: neither CPUID nor HPET nor PM timer tells how fast the TSC runs"),
    }
    console::log::set_clock();
    clock::start();
}

/// Nothing interrupts but what the host asks for.
fn quiet_interrupts() {
    let _span = timeline::span(Name::Interrupts, 0);
    let tables = FIRMWARE.lock();
    if tables.has_8259 {
        power::mask_8259();
    }
    (0..tables.io_apics.len()).for_each(|number| IoApic::mapped(number).mask_all());
    apic::open_nmi_line();
}

fn run_self_tests() {
    let Some((_, options)) = BOOT.get() else { return };
    let _span = (!options.self_tests.is_empty()).then(|| timeline::span(Name::SelfTests, 0));
    for test in &options.self_tests {
        log::info!("self-test: {test:?}");
        match test {
            SelfTest::Exception => trap::provoke(trap::Provocation::InvalidOpcode),
            SelfTest::PageFault => trap::provoke(trap::Provocation::PageFault),
            SelfTest::StackOverflow => trap::provoke(trap::Provocation::StackOverflow),
            SelfTest::WriteToCode => trap::provoke(trap::Provocation::WriteToCode),
            SelfTest::Panic => panic!("self-test"),
            SelfTest::Log => selftest::logging::contexts(),
            SelfTest::LogStorm => storm::order(),
            // The others happen elsewhere, or fail in ways of their own.
            other => selftest::fail(*other),
        }
    }
}
