// SPDX-License-Identifier: MIT OR Apache-2.0
//! Serial numbers of NVMe controllers, which the host asks while no guest has them.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use ::pci::bar::Space;
use ::pci::{Bdf, ConfigWrite, Function, Kind};
use bundle::limits;
use nvme::{DMA_BYTES, Registers, Serial};
use units::{PhysAddr, PhysRange};
use vm::addr::AccessSize;

use super::under_way;
use crate::arch::device_memory::DeviceMemory;
use crate::arch::dma_memory::DmaMemory;
use crate::arch::timer;
use crate::guests::pci;
use crate::kernel::iommu::guests as iommu;

/// The registers that are needed: those of the controller, and the first doorbell.
const REGISTER_BYTES: u64 = 0x2000;
/// The host's own number where guests have theirs.
const HOST: u32 = limits::GUESTS as u32;

const COMMAND: u16 = 0x04;
/// It decodes memory and masters the bus; interrupts by pins are off.
const AT_WORK: u16 = 1 << 10 | 0b110;
const QUIET: u16 = 1 << 10;

/// The registers of a controller.
struct Controller(DeviceMemory);

impl Registers for Controller {
    fn read32(&mut self, offset: u64) -> u32 {
        self.0.read(offset, AccessSize::Dword) as u32
    }

    fn write32(&mut self, offset: u64, value: u32) {
        self.0.write(offset, AccessSize::Dword, value.into());
    }

    fn pause(&mut self) {
        timer::delay_us(1);
    }
}

/// Reads the serial numbers of all controllers without a known one that no guest has. The caller keeps guests from
/// choosing them meanwhile; its CPU waits. Virtual functions are not asked: the driver of their physical function
/// brings them online, and they report its serial number.
pub fn ask_all(is_taken: impl Fn(Bdf) -> bool) {
    let is_unknown = |function: &&Function| function.is_nvme() && function.serial.is_none();
    let unknown: Vec<Function> =
        pci::with_functions(|functions| functions.iter().filter(is_unknown).cloned().collect());
    let is_free = |function: &&Function| !is_taken(function.place) && !pci::sriov::is_virtual(function.place);
    for function in unknown.iter().filter(is_free) {
        match ask(function) {
            Ok(serial) => {
                log::info!("PCI function {}: serial number {serial}", function.place);
                pci::note_serial(function.place, serial);
            }
            Err(problem) => log::warn!("PCI function {}: its serial number is not known: {problem}", function.place),
        }
    }
}

/// The known serial numbers, for an operator who has named another one.
pub fn known(functions: &[Function]) -> String {
    let serials = functions.iter().filter_map(|function| Some((function.serial?, function.place)));
    let known: Vec<String> = serials.map(|(serial, place)| format!("{serial} ({place})")).collect();
    if known.is_empty() { "none".to_string() } else { known.join(", ") }
}

fn ask(function: &Function) -> Result<Serial, String> {
    let place = function.place;
    under_way::finish(place);
    let registers = registers(function)?;
    let mut memory = DmaMemory::allocate(DMA_BYTES).map_err(|error| error.to_string())?;
    let address = memory.range().start().0;
    if let Err(problem) = iommu::attach(HOST, place, &[(address, memory.range())]) {
        memory.free();
        return Err(problem);
    }
    pci::with_config(|config| config.write16(place, COMMAND, AT_WORK));
    let answer = nvme::serial(&mut Controller(registers), &mut memory, address);
    pci::with_config(|config| config.write16(place, COMMAND, QUIET));
    match iommu::release(place).and_then(|()| iommu::free(HOST)) {
        Ok(()) => memory.free(),
        // It may reach the memory for ever.
        Err(_) => memory.keep_for_good(),
    }
    answer.map_err(|problem| problem.to_string())
}

fn registers(function: &Function) -> Result<DeviceMemory, String> {
    let Kind::Endpoint { bars } = &function.kind else { return Err("it is a bridge".to_string()) };
    let bar = bars.iter().find(|bar| bar.index == 0 && bar.space != Space::Ports && bar.address != 0);
    let bar = bar.ok_or("firmware has not placed its registers")?;
    let range = PhysRange::from_start(PhysAddr(bar.address), REGISTER_BYTES).ok_or("its registers cannot be there")?;
    if let Some(taken) = pci::taken_by(function.place, range) {
        return Err(format!("its registers at {:#x} overlap {taken}", bar.address));
    }
    DeviceMemory::map(range).map_err(|error| format!("its registers cannot be mapped: {error:?}"))
}
