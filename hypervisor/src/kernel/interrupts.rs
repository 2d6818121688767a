// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts of devices: the mode of the APICs, the UARTs' inputs at the I/O APICs, and the watchdog's.

use alloc::format;
use alloc::string::String;

use boot::options::ApicMode;
use firmware::{Override, Tables};
use iommu::{Interrupt, Signal};
use spin::Mutex;

use crate::arch::apic::NotChosen;
use crate::arch::ending;
use crate::arch::ioapic::IoApic;
use crate::arch::line_inputs::Input;
use crate::arch::{apic, power, strays, trap, watchdog};
use crate::kernel::console;
use crate::kernel::iommu::inputs;
use crate::kernel::platform::{firmware, options};
use crate::kernel::timeline::{self, Name};

const COM1_IRQ: u8 = 4;
const COM2_IRQ: u8 = 3;
/// COM1 and COM2, as the end of the host counts them.
const CONSOLE_UART: usize = 0;
const CONTROL_UART: usize = 1;
/// The watchdog's spare entry; those of the UARTs have the UARTs' numbers.
const WATCHDOG_SPARE: u16 = 2;

/// A UART's input, and the vector that it sends, if it does.
#[derive(Clone, Copy)]
struct UartLine {
    line: Override,
    vector: Option<u8>,
}

/// The inputs of COM1 and COM2 that are known.
static UART_LINES: Mutex<[Option<UartLine>; 2]> = Mutex::new([None; 2]);

/// Puts the boot CPU's local APIC into the mode that the operator wants, where it can be.
pub fn choose_apic(wanted: ApicMode) {
    let wanted = match wanted {
        ApicMode::Auto => None,
        ApicMode::XApic => Some(apic::Mode::Xapic),
        ApicMode::X2Apic => Some(apic::Mode::X2apic),
    };
    match apic::choose(wanted) {
        Ok(()) => {}
        Err(NotChosen::NoX2apic) => log::warn!("option apic=x2apic: this CPU has none; xAPIC mode is used"),
        Err(NotChosen::X2apicIsOn) => {
            log::warn!(
                "option apic=xapic: the firmware has left x2APIC mode on; it is used, since CPUs cannot leave it"
            )
        }
    }
}

/// Masks all interrupts but those that the host uses.
pub fn quiet_interrupts() {
    let _span = timeline::span(Name::Interrupts, 0);
    let tables = firmware();
    if tables.has_8259 {
        power::mask_8259();
    }
    (0..tables.io_apics.len()).for_each(|number| IoApic::mapped(number).mask_all());
    apic::open_nmi_line();
}

/// The control channel's UART interrupts the boot CPU, which serves it.
pub fn route_control_channel() {
    let line = firmware().isa_interrupt(COM2_IRQ);
    if !route_to_this_cpu(line, CONTROL_UART, Some(trap::vector::CONTROL_UART)) {
        log::warn!("control channel: no I/O APIC has its interrupt; it is checked only when the host is awake");
    }
}

/// The console's UART interrupts the boot CPU when it has room; returns whether it does. An input that is
/// level-triggered would interrupt for as long as there is nothing to print: it is not used, and the UART is polled.
pub fn route_console() -> bool {
    let line = firmware().isa_interrupt(COM1_IRQ);
    if line.is_level {
        route_to_this_cpu(line, CONSOLE_UART, None);
        return false;
    }
    route_to_this_cpu(line, CONSOLE_UART, Some(trap::vector::CONSOLE_UART))
}

/// The control channel's UART interrupts this image's boot CPU.
pub fn take_interrupts() {
    strays::host_is_up();
    prepare_watchdog();
    route_control_channel();
}

/// A watchdog for images on trial and for the host's end; returns whether there is a way for one.
pub fn prepare_watchdog() -> bool {
    let has_one = {
        let tables = firmware();
        let used = [COM1_IRQ, COM2_IRQ].map(|irq| tables.isa_interrupt(irq).gsi);
        let free = |gsi| if used.contains(&gsi) { None } else { input_of(tables, gsi) };
        watchdog::prepare(tables.hpet_address.is_some(), free)
    };
    if !watchdog::has_entry() {
        route_watchdog();
    }
    has_one
}

/// The watchdog's input sends NMIs to the calling CPU, the boot CPU.
fn route_watchdog() {
    if let Some((number, input)) = watchdog::input() {
        let entry = inputs::redirect(number, input, Signal::Nmi { destination: apic::id() }, false);
        watchdog::set_entry(entry, inputs::spare(number, WATCHDOG_SPARE));
    }
}

/// Routes every known input again: interrupts have begun to be remapped, or are remapped no more. A UART may have
/// interrupted meanwhile, so that it is served.
pub fn route_again() {
    route_watchdog();
    let lines = *UART_LINES.lock();
    for (uart, known) in lines.into_iter().enumerate() {
        let Some(UartLine { line, vector }) = known else { continue };
        route_to_this_cpu(line, uart, vector);
        vector.into_iter().for_each(apic::wake_self_from_anywhere);
    }
}

/// Before an image begins that knows of no remapped interrupts: they pass unchecked, and its entries arrive.
pub fn pass_interrupts() {
    if inputs::pass() {
        route_again();
    }
}

/// That image has not begun after all.
pub fn remap_interrupts_again() {
    if inputs::remap_again() {
        route_again();
    }
}

/// The watchdog of the image before is this one's business no more.
pub fn silence_watchdog() {
    let tables = firmware();
    watchdog::silence(tables.hpet_address.is_some(), tables.io_apics.len());
}

/// Sends a UART's interrupt to the calling CPU, where it sends a vector; `false` if no I/O APIC has it. The owner of
/// the end of the host routes it again.
fn route_to_this_cpu(line: Override, uart: usize, vector: Option<u8>) -> bool {
    let Some((number, input)) = input_of(firmware(), line.gsi) else { return false };
    if let Some(vector) = vector {
        let interrupt = Interrupt { vector, destination: apic::id(), is_level: line.is_level };
        let entry = inputs::redirect(number, input, Signal::Interrupt(interrupt), line.is_active_low);
        IoApic::mapped(number).set(input, entry);
    }
    let spare = inputs::spare(number, uart as u16);
    ending::note_uart_input(uart, (number, input), line.is_level, line.is_active_low, spare);
    UART_LINES.lock()[uart] = Some(UartLine { line, vector });
    true
}

/// The I/O APIC that has this global interrupt, and at which input, as firmware states it. The hardware is not
/// accessed.
pub fn line_input(gsi: u32) -> Option<Input> {
    let tables = firmware();
    let below = tables.io_apics.iter().enumerate().filter(|(_, io_apic)| io_apic.gsi_base <= gsi);
    let (number, io_apic) = below.max_by_key(|(_, io_apic)| io_apic.gsi_base)?;
    Some((number, gsi - io_apic.gsi_base)).filter(|(_, input)| *input < 256)
}

/// Checks that a global interrupt can be a PCI function's line.
///
/// # Errors
/// No I/O APIC has it, or the host uses it.
pub fn check_line(gsi: u32) -> Result<(), String> {
    let input = input_of(firmware(), gsi).ok_or("is no I/O APIC's")?;
    let lines = UART_LINES.lock();
    let users = ["the console's (COM1)", "the control channel's (COM2)"];
    let used = lines.iter().zip(users).find(|(line, _)| line.is_some_and(|known| known.line.gsi == gsi));
    let user = used.map(|(_, user)| user).or((watchdog::input() == Some(input)).then_some("the watchdog's"));
    user.map_or(Ok(()), |user| Err(format!("is {user}")))
}

/// The I/O APIC that has this global interrupt, and at which input.
fn input_of(tables: &Tables, gsi: u32) -> Option<(usize, u32)> {
    tables.io_apics.iter().enumerate().find_map(|(number, io_apic)| {
        let inputs = io_apic.gsi_base..io_apic.gsi_base + IoApic::mapped(number).inputs();
        inputs.contains(&gsi).then(|| (number, gsi - io_apic.gsi_base))
    })
}

/// An image that has taken over prints the log from now on.
pub fn take_console() {
    let Some(options) = options() else { return };
    console::start(options.log, options.console);
    console::run(route_console());
}
