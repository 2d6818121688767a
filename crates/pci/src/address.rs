// SPDX-License-Identifier: MIT OR Apache-2.0
//! Addresses of functions, and access to their registers.

use core::fmt;
use core::str::FromStr;

/// Devices on a bus.
const DEVICES: u8 = 32;
/// Functions of a device.
const FUNCTIONS: u8 = 8;
/// Registers that ports reach; the rest only memory does.
const PORT_REGISTERS: u16 = 256;
const FUNCTION_BYTES: u16 = 4096;
/// Configuration space of a bus is a mebibyte.
const BUS_SHIFT: u32 = 20;

/// A function's place: segment, bus, device, function. Prints as `0000:00:1f.3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bdf {
    /// The segment group; 0 on all machines but large ones.
    pub segment: u16,
    /// The bus.
    pub bus: u8,
    /// The device on the bus, below 32.
    device: u8,
    /// The function of the device, below 8.
    function: u8,
}

impl Bdf {
    /// Returns a place; `None` if there is no such device or function number.
    pub const fn new(segment: u16, bus: u8, device: u8, function: u8) -> Option<Self> {
        if device >= DEVICES || function >= FUNCTIONS {
            return None;
        }
        Some(Self { segment, bus, device, function })
    }

    /// Returns the device on the bus, 0 to 31.
    pub const fn device(self) -> u8 {
        self.device
    }

    /// Returns the function of the device, 0 to 7.
    pub const fn function(self) -> u8 {
        self.function
    }

    /// Returns another function of the same device; `None` if there is no such number.
    pub const fn with_function(self, function: u8) -> Option<Self> {
        Self::new(self.segment, self.bus, self.device, function)
    }

    /// Returns the requester identifier of the function's requests (PCI Express Base 5.0, section 2.2.6.2): bus in
    /// bits 8–15, device in 3–7, function in 0–2.
    pub const fn requester(self) -> u16 {
        (self.bus as u16) << 8 | (self.device as u16) << 3 | self.function as u16
    }

    /// Returns the function with this requester identifier.
    pub const fn of_requester(segment: u16, requester: u16) -> Self {
        let [bus, rest] = requester.to_be_bytes();
        Self { segment, bus, device: rest >> 3, function: rest & 0b111 }
    }
}

impl fmt::Display for Bdf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:02x}:{:02x}.{:x}", self.segment, self.bus, self.device, self.function)
    }
}

/// The text is no place of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPlace;

impl FromStr for Bdf {
    type Err = NoPlace;

    /// Reads `00:1f.3` or `0000:00:1f.3`, all hexadecimal.
    fn from_str(text: &str) -> Result<Self, NoPlace> {
        let (rest, function) = text.rsplit_once('.').ok_or(NoPlace)?;
        let (rest, device) = rest.rsplit_once(':').ok_or(NoPlace)?;
        let (segment, bus) = rest.rsplit_once(':').unwrap_or(("0", rest));
        let byte = |text| hexadecimal(text).and_then(|value| u8::try_from(value).ok()).ok_or(NoPlace);
        let segment = hexadecimal(segment).ok_or(NoPlace)?;
        Self::new(segment, byte(bus)?, byte(device)?, byte(function)?).ok_or(NoPlace)
    }
}

/// Parses one to four hexadecimal digits; no sign, no prefix.
pub(crate) fn hexadecimal(text: &str) -> Option<u16> {
    let is_digits = (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_digits.then(|| u16::from_str_radix(text, 16).ok()).flatten()
}

/// A window of memory that shows the configuration space of some buses (the MCFG table names them).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EcamRange {
    /// Physical address of bus 0's registers, whether or not bus 0 is in the range.
    pub base: u64,
    /// The segment group.
    pub segment: u16,
    /// The first bus.
    pub first_bus: u8,
    /// The last bus.
    pub last_bus: u8,
}

impl EcamRange {
    /// Returns the physical addresses at which its buses are: the first one, and the first one behind; `None` if there
    /// is no such memory.
    pub fn addresses(&self) -> Option<(u64, u64)> {
        let start = self.base.checked_add(u64::from(self.first_bus) << BUS_SHIFT)?;
        let end = self.base.checked_add((u64::from(self.last_bus) + 1) << BUS_SHIFT)?;
        (start < end).then_some((start, end))
    }

    /// Returns whether any of it is at the physical addresses from `start` on, before `end`.
    pub fn overlaps(&self, start: u64, end: u64) -> bool {
        self.addresses().is_some_and(|(mine, mine_end)| mine < end && start < mine_end)
    }
}

/// Way to reach a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// Four bytes in memory.
    Memory {
        /// The range that shows them, by its place in the list.
        range: usize,
        /// Offset in bytes from the range's first bus.
        offset: u64,
    },
    /// This word to port 0xcf8, the register at port 0xcfc.
    Ports(u32),
}

/// Returns the way to reach the four bytes at `register` (rounded down to a multiple of four) of a function: through
/// memory where a range shows it, else through the ports; `None` where neither does.
pub fn route(ranges: &[EcamRange], place: Bdf, register: u16) -> Option<Route> {
    let register = register & !3;
    if register >= FUNCTION_BYTES {
        return None;
    }
    let shows =
        |range: &EcamRange| range.segment == place.segment && (range.first_bus..=range.last_bus).contains(&place.bus);
    if let Some(range) = ranges.iter().position(shows) {
        let number = u32::from(place.requester()) - (u32::from(ranges[range].first_bus) << 8);
        return Some(Route::Memory { range, offset: u64::from(number) << 12 | u64::from(register) });
    }
    let by_ports = place.segment == 0 && register < PORT_REGISTERS;
    by_ports.then(|| Route::Ports(1 << 31 | u32::from(place.requester()) << 8 | u32::from(register)))
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
