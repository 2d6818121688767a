// SPDX-License-Identifier: MIT OR Apache-2.0
//! The devices of a guest's machine behind their ports and addresses.
//!
//! Each device has a lock of its own. Locks are taken in the order PCI bus, function or other device, I/O APIC; none is
//! held while a vCPU is interrupted. [`Bus::find_port`] and [`Bus::find_memory`] find a device without a lock, unless
//! the address is one that PCI functions may have been moved to.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use arrayvec::ArrayVec;
use spin::Mutex;

use super::cmos::Cmos;
use super::com1::Com1;
use super::debug_exit::DebugExit;
use super::device::{At, Claim, Device, Tag};
use super::hot_plug::{self, HotPlug};
use super::ioapic::Ioapic;
use super::outputs::Outputs;
use super::pci::{Apertures, Behind, Endpoint, Function, Nothing, PciBus, Reach, Slot, Space};
use super::power::Power;
use super::power_button::PowerButton;
use super::pvpanic::Pvpanic;
use crate::addr::{AccessSize, Gpa};
use crate::platform::layout::{FIXED_PORTS_END, PCI_PINS};

mod found;
mod functions;
mod memory;
mod ports;

pub use found::Found;
use memory::MemoryMap;
use ports::PortMap;

/// The most functions that may leave: one in each device but the host bridge.
const MOST_PLUGGED: usize = (hot_plug::DEVICES.end - hot_plug::DEVICES.start) as usize;

/// Another device answers there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken;

/// A device that an access is for, and where in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    reach: Reach,
    at: At,
}

/// The devices that all vCPUs of a guest share.
pub struct Bus {
    com1: Arc<Mutex<Com1>>,
    ioapic: Arc<Mutex<Ioapic>>,
    hot_plug: Arc<Mutex<HotPlug>>,
    power_button: Arc<Mutex<PowerButton>>,
    pci: Arc<Mutex<PciBus>>,
    devices: Vec<Arc<Mutex<dyn Device>>>,
    ports: PortMap,
    memory: MemoryMap,
    /// A byte for each of [`PCI_PINS`]: the slot of the function that owns the line; 0, the host bridge's slot, for no
    /// line.
    lines: AtomicU64,
    /// Functions that are polled.
    polled: Vec<usize>,
}

impl Bus {
    /// The devices of every machine, and a debug-exit port if it has one.
    pub fn new(has_debug_exit: bool) -> Self {
        let (com1, ioapic) = (Arc::new(Mutex::new(Com1::new())), Arc::new(Mutex::new(Ioapic::new(0))));
        let hot_plug = Arc::new(Mutex::new(HotPlug::new()));
        let power_button = Arc::new(Mutex::new(PowerButton::new()));
        let pci = Arc::new(Mutex::new(PciBus::new()));
        let (devices, lines, polled) = (Vec::new(), AtomicU64::new(0), Vec::new());
        let (ports, memory) = (PortMap::new(), MemoryMap::new());
        let mut bus = Self { com1, ioapic, hot_plug, power_button, pci, devices, ports, memory, lines, polled };
        let fixed: [Arc<Mutex<dyn Device>>; 8] = [
            bus.com1.clone(),
            Arc::new(Mutex::new(Cmos::new())),
            bus.ioapic.clone(),
            Arc::new(Mutex::new(Power::new())),
            Arc::new(Mutex::new(Pvpanic::new())),
            bus.pci.clone(),
            bus.hot_plug.clone(),
            bus.power_button.clone(),
        ];
        let debug_exit = has_debug_exit.then(|| Arc::new(Mutex::new(DebugExit::new())) as _);
        for device in fixed.into_iter().chain(debug_exit) {
            // Their ranges are the machine's layout.
            let _ = bus.add(device);
        }
        let _ = bus.attach_function(Endpoint::new(Slot::HOST_BRIDGE, Function::host_bridge(), Nothing));
        bus
    }

    /// Adds a device. The machine must not have run.
    ///
    /// # Errors
    /// [`Taken`] if another device answers at one of its ports or addresses, or has its tag.
    pub fn attach<D: Device + 'static>(&mut self, device: D) -> Result<Arc<Mutex<D>>, Taken> {
        let shared = Arc::new(Mutex::new(device));
        self.add(shared.clone())?;
        Ok(shared)
    }

    /// Adds a PCI function. The machine must not have run.
    ///
    /// # Errors
    /// [`Taken`] if its slot is, or the pin of its line.
    pub fn attach_function<D: Behind + 'static>(
        &mut self,
        function: Endpoint<D>,
    ) -> Result<Arc<Mutex<Endpoint<D>>>, Taken> {
        let (slot, line, polls) = (function.slot(), function.line(), function.polls());
        self.claim_line(line, slot)?;
        let shared = Arc::new(Mutex::new(function));
        if !self.pci.lock().insert(slot, self.devices.len(), shared.clone()) {
            self.release_line(line);
            return Err(Taken);
        }
        self.polled.extend(polls.then_some(self.devices.len()));
        self.devices.push(shared.clone());
        Ok(shared)
    }

    /// Adds a PCI function that may leave again, while the machine runs or before.
    ///
    /// # Errors
    /// [`Taken`] if its slot is, or the pin of its line.
    pub fn plug<D: Behind + 'static>(&self, function: Endpoint<D>) -> Result<Arc<Mutex<Endpoint<D>>>, Taken> {
        let (slot, line) = (function.slot(), function.line());
        self.claim_line(line, slot)?;
        let shared = Arc::new(Mutex::new(function));
        if self.pci.lock().plug(slot, shared.clone()) {
            return Ok(shared);
        }
        self.release_line(line);
        Err(Taken)
    }

    /// Takes a PCI function that may leave out of its slot, while the machine runs; returns whether there was one. A
    /// vCPU that has found it before still reaches it for the access that it is at. Its line is not asserted any more.
    pub fn unplug(&self, slot: Slot) -> bool {
        let left = self.pci.lock().unplug(slot);
        let lines = self.lines.load(Ordering::Acquire).to_le_bytes();
        let its = PCI_PINS.zip(lines).find(|(_, owner)| left.is_some() && *owner == slot.0);
        if let Some((pin, _)) = its {
            // A line that falls sends nothing.
            let _ = self.ioapic.lock().set_line(pin, false);
            self.release_line(Some(pin));
        }
        left.is_some()
    }

    /// A pin is the line of the function in a slot, which no other function has.
    fn claim_line(&self, line: Option<u8>, slot: Slot) -> Result<(), Taken> {
        let Some(pin) = line else { return Ok(()) };
        let at = pin.checked_sub(PCI_PINS.start).filter(|_| PCI_PINS.contains(&pin)).ok_or(Taken)? * 8;
        let claim = |lines: u64| (lines >> at & 0xff == 0).then_some(lines | u64::from(slot.0) << at);
        self.lines.fetch_update(Ordering::AcqRel, Ordering::Acquire, claim).map(drop).map_err(|_| Taken)
    }

    fn release_line(&self, line: Option<u8>) {
        if let Some(at) = line.and_then(|pin| pin.checked_sub(PCI_PINS.start)) {
            self.lines.fetch_and(!(0xff << (at * 8)), Ordering::AcqRel);
        }
    }

    /// The first device of the bus without a function, by its number, in which one can come.
    pub fn free_device(&self) -> Option<u8> {
        let pci = self.pci.lock();
        let mut devices = hot_plug::DEVICES;
        devices.find(|device| (0..8).all(|function| pci.is_free(Slot(device << 3 | function))))
    }

    fn add(&mut self, device: Arc<Mutex<dyn Device>>) -> Result<(), Taken> {
        let (tag, claims) = {
            let device = device.lock();
            (device.tag(), device.claims())
        };
        let is_free = |claim: &Claim| match *claim {
            Claim::Ports { first, count, widths } => self.ports.is_free(first, count, widths),
            Claim::Memory { first, bytes } => self.memory.is_free(first, bytes),
        };
        if !claims.iter().all(is_free) || self.has(tag) {
            return Err(Taken);
        }
        for (range, claim) in (0..).zip(claims) {
            match *claim {
                Claim::Ports { first, count, widths } => {
                    self.ports.add((first, count), widths, (self.devices.len(), range));
                }
                Claim::Memory { first, bytes } => {
                    self.memory.add((first, bytes), (self.devices.len(), range));
                }
            }
        }
        self.devices.push(device);
        Ok(())
    }

    /// COM1.
    #[inline]
    pub fn com1(&self) -> &Mutex<Com1> {
        &self.com1
    }

    /// The I/O APIC.
    #[inline]
    pub fn ioapic(&self) -> &Mutex<Ioapic> {
        &self.ioapic
    }

    /// The controller by which functions come and go.
    pub fn hot_plug(&self) -> &Mutex<HotPlug> {
        &self.hot_plug
    }

    /// The power button.
    pub fn power_button(&self) -> &Mutex<PowerButton> {
        &self.power_button
    }

    /// Returns whether there is a device with this tag.
    pub fn has(&self, tag: Tag) -> bool {
        self.devices().any(|device| device.lock().tag() == tag)
    }

    /// Every device: those that stay, then the functions that may leave. Nothing is allocated.
    pub fn devices(&self) -> impl Iterator<Item = Found<'_>> {
        let mut plugged = ArrayVec::<_, MOST_PLUGGED>::new();
        {
            let pci = self.pci.lock();
            let functions = pci.plugged_slots().filter_map(|slot| pci.plugged(slot));
            plugged.extend(functions.take(MOST_PLUGGED).map(|function| Found::Plugged(function)));
        }
        self.devices.iter().map(|device| Found::Fixed(&**device)).chain(plugged)
    }

    /// The device at a place that was found; `None` if it has left meanwhile.
    #[inline]
    pub fn device(&self, place: Place) -> Option<(Found<'_>, At)> {
        let device = match place.reach {
            Reach::Fixed(device) => Found::Fixed(&**self.devices.get(device)?),
            Reach::Plugged(slot) => Found::Plugged(self.pci.lock().plugged(slot)?),
        };
        Some((device, place.at))
    }

    /// The device that answers an access to a port.
    #[inline]
    pub fn find_port(&self, port: u16, size: AccessSize) -> Option<Place> {
        if port >= FIXED_PORTS_END {
            return self.find_moved(Space::Io, port.into(), size);
        }
        let (device, range, offset) = self.ports.find(port, size)?;
        Some(Place { reach: Reach::Fixed(device), at: At { range, offset: offset.into(), size } })
    }

    /// The device that answers an access to an address without memory.
    pub fn find_memory(&self, gpa: Gpa, size: AccessSize) -> Option<Place> {
        match self.memory.find(gpa) {
            Some((device, range, offset)) => {
                Some(Place { reach: Reach::Fixed(device), at: At { range, offset, size } })
            }
            None => self.find_moved(Space::Memory, gpa.0, size),
        }
    }

    #[cold]
    fn find_moved(&self, space: Space, address: u64, size: AccessSize) -> Option<Place> {
        let (reach, at) = self.pci.lock().find(space, address, size)?;
        Some(Place { reach, at })
    }

    /// Applies the lines that a device has changed; it is still borrowed, so that no older level comes after a newer
    /// one. Messages of the I/O APIC join the outputs. The I/O APIC itself, which may be what is borrowed, has no line.
    pub fn apply_lines(&self, outputs: &mut Outputs) {
        let lines = outputs.take_lines();
        if lines.is_empty() {
            return;
        }
        let mut ioapic = self.ioapic.lock();
        for line in lines {
            if let Some(message) = ioapic.set_line(line.pin, line.level) {
                outputs.send_for_line(message);
            }
        }
    }
}
