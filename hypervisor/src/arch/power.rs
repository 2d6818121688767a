// SPDX-License-Identifier: MIT OR Apache-2.0
//! Leaving at once: power-off and reset as the firmware's tables state (`firmware::power`), and the lab's debug exit.

use firmware::Location;
use firmware::power::{Machine, Power};
use spin::Once;

use super::{address, cpu, port, timer, trap};

/// QEMU's isa-debug-exit in the lab's machines.
const DEBUG_EXIT_PORT: u16 = 0xf4;
/// Register `n` of [`Power::addresses`] is in the page at `MAPPED_AT + n × 4 KiB`.
const MAPPED_AT: u64 = address::DEVICES + 0x30_0000;
const PAGE_BYTES: u64 = 4096;
/// Address and data port of PCI configuration space.
const PCI_ADDRESS: u16 = 0xcf8;
const PCI_DATA: u16 = 0xcfc;

/// The tables' contents; read when nothing may be locked.
static POWER: Once<Power> = Once::new();

/// Notes how this machine is powered off and reset. Its registers in memory are mapped by [`pages`].
pub fn note(power: Power) {
    POWER.call_once(|| power);
}

/// The pages to map for registers in memory: virtual and physical address.
pub fn pages(power: &Power) -> impl Iterator<Item = (u64, u64)> {
    power.addresses().zip(0..).map(|(address, number)| (MAPPED_AT + number * PAGE_BYTES, address & !(PAGE_BYTES - 1)))
}

/// Powers the machine off; halts where the firmware did not state how.
pub fn power_off() -> ! {
    if let Some(power) = POWER.get() {
        power.power_off(&mut Registers);
    }
    cpu::halt_forever()
}

/// Resets the machine: by the firmware's reset register, by the old ways of PCs, by a triple fault.
pub fn reset() -> ! {
    // Without tables the old ways remain.
    POWER.get().copied().unwrap_or_default().reset(&mut Registers);
    trap::shut_down()
}

/// The registers that `firmware::power` names. Other CPUs may use the ports of configuration space at that time: the
/// machine is going.
struct Registers;

impl Registers {
    /// Returns where a register in memory is mapped.
    fn mapped(address: u64) -> Option<u64> {
        let number = POWER.get()?.addresses().position(|known| known == address)? as u64;
        Some(MAPPED_AT + number * PAGE_BYTES + address % PAGE_BYTES)
    }

    /// Shows a register of bus 0 at the data ports, and states at which.
    fn choose(device: u8, function: u8, offset: u8) -> u16 {
        let word = 1 << 31 | u32::from(device) << 11 | u32::from(function) << 8 | u32::from(offset & 0xfc);
        // SAFETY: this port only chooses what the data ports show.
        unsafe { port::write_u32(PCI_ADDRESS, word) };
        PCI_DATA + u16::from(offset & 3)
    }
}

impl Machine for Registers {
    fn read(&mut self, at: Location, bytes: u8) -> u32 {
        let port = match at {
            Location::Port(port) => port,
            Location::PciConfiguration { device, function, offset } => Self::choose(device, function, offset),
            Location::Memory(address) => {
                let Some(at) = Self::mapped(address) else { return u32::MAX };
                // SAFETY: the page is mapped uncached, and the FADT states that this byte in it is a power management
                // register.
                return u32::from(unsafe { core::ptr::read_volatile(at as *const u8) });
            }
        };
        // SAFETY: a power management register, or the keyboard controller's status: reading them changes nothing.
        unsafe { if bytes == 1 { u32::from(port::read_u8(port)) } else { u32::from(port::read_u16(port)) } }
    }

    fn write(&mut self, at: Location, bytes: u8, value: u32) {
        let port = match at {
            Location::Port(port) => port,
            Location::PciConfiguration { device, function, offset } => Self::choose(device, function, offset),
            Location::Memory(address) => {
                let Some(at) = Self::mapped(address) else { return };
                // SAFETY: as in `read`; the machine is to end by this.
                return unsafe { core::ptr::write_volatile(at as *mut u8, value as u8) };
            }
        };
        // SAFETY: the FADT names this register, or PCs have it; the machine is to end by this.
        unsafe { if bytes == 1 { port::write_u8(port, value as u8) } else { port::write_u16(port, value as u16) } };
    }

    fn wait(&mut self) {
        timer::delay_us(1000);
    }
}

/// Ends a lab machine with a status; halts where there is no such device.
pub fn debug_exit(code: u32) -> ! {
    // SAFETY: in the lab this port ends QEMU; elsewhere no device decodes it.
    unsafe { port::write_u32(DEBUG_EXIT_PORT, code) };
    cpu::halt_forever()
}

/// Masks both 8259s: interrupts come through the I/O APICs only.
pub fn mask_8259() {
    // SAFETY: the MADT states that the 8259s are there; these are their mask registers.
    unsafe {
        port::write_u8(0x21, 0xff);
        port::write_u8(0xa1, 0xff);
    }
}
