// SPDX-License-Identifier: MIT OR Apache-2.0
//! Virtio devices that the host gives to guests: the bundle names them, and they are on the guest's bus before it runs.
//!
//! | device number | device |
//! |---|---|
//! | 31 | entropy source |
//! | 30 | console |
//!
//! Assigned functions count from 1 up. So neither moves when others come or go.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

use entropy::Generator;
use vm::devices::pci::{Slot, Unfit};
use vm::devices::virtio::console::{Console, Port};
use vm::devices::virtio::rng::{Entropy, Rng};
use vm::devices::virtio::{VirtioDevice, in_slot};
use vm::machine::Machine;

use crate::arch::entropy::Instructions;
use crate::arch::guest_memory::GuestRam;
use crate::guests::guest::Guest;

const RNG: Slot = Slot(31 << 3);
const CONSOLE: Slot = Slot(30 << 3);

/// A guest's own source of random bytes.
struct GuestEntropy(Generator<Instructions>);

impl Entropy for GuestEntropy {
    fn fill(&mut self, into: &mut [u8]) {
        self.0.fill(into);
    }
}

/// A guest's console, as its virtio device reaches it.
struct GuestPort(Arc<Guest>);

impl Port for GuestPort {
    fn write(&mut self, bytes: &[u8]) {
        self.0.console_output(bytes);
    }

    fn read(&mut self, into: &mut [u8]) -> usize {
        self.0.virtio_console_typed(into)
    }

    fn set_takes_input(&mut self, takes_input: bool) {
        self.0.set_virtio_takes_input(takes_input);
    }
}

/// Puts the virtio devices that a guest gets on its bus, as after power-on.
///
/// # Errors
/// Which one it cannot have, and why.
pub fn attach(guest: &Arc<Guest>, machine: &mut Machine<GuestRam>) -> Result<(), String> {
    let devices = guest.config.virtio;
    // The run before may have ended with its driver at work.
    guest.set_virtio_takes_input(false);
    if devices.rng {
        let generator = Generator::new(Instructions::detect()).map_err(|error| format!("virtio-rng: {error}"))?;
        put(machine, RNG, Rng::new(GuestEntropy(generator))).map_err(|Unfit| no_room("virtio-rng"))?;
    }
    if devices.console {
        put(machine, CONSOLE, Console::new(GuestPort(guest.clone()))).map_err(|Unfit| no_room("virtio-console"))?;
    }
    Ok(())
}

fn no_room(name: &str) -> String {
    format!("{name}: its slot on the guest's bus is taken")
}

fn put<D: VirtioDevice + 'static>(machine: &mut Machine<GuestRam>, slot: Slot, device: D) -> Result<(), Unfit> {
    let function = in_slot(slot, device)?;
    machine.bus_mut().attach_function(function).map(drop).map_err(|_| Unfit)
}
