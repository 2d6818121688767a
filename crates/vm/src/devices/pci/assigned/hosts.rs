// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's operations on a function: it has interrupted, been reset, or vanished. The outputs hold what the guest's
//! CPUs are notified of.

use alloc::vec::Vec;

use handover::state::AssignedFunction;

use super::description::Description;
use super::passed::Command;
use super::physical::{Interrupts, Phase, Physical, Raised};
use super::space;
use super::{Assigned, Behind as _};
use crate::devices::outputs::Outputs;
use crate::devices::pci::endpoint::Endpoint;

impl<P: Physical> Endpoint<Assigned<P>> {
    /// The hardware has interrupted: the guest gets one interrupt for it, now or when it unmasks the vector. One that
    /// it has closed meanwhile is dropped.
    pub fn raise(&mut self, raised: Raised, outputs: &mut Outputs) {
        let (function, assigned) = self.parts();
        match (raised, assigned.vectors.interrupts) {
            _ if !assigned.is_present() => {}
            (Raised::Line, Interrupts::Line) => {
                let Some(pin) = assigned.description.line.filter(|_| !assigned.is_line_asserted) else { return };
                assigned.is_line_asserted = true;
                function.change(space::STATUS, space::INTERRUPT_STATUS, space::INTERRUPT_STATUS);
                outputs.set_line(pin, true);
            }
            (Raised::Vector(vector), Interrupts::Msi { .. } | Interrupts::MsiX) => _ = function.raise(vector, outputs),
            _ => {}
        }
    }

    /// The reset that the guest has asked for is done, and the host has placed the function again; or it has failed,
    /// and the function is gone. `Bus::place_functions` is not needed.
    pub fn finish_reset(&mut self, is_done: bool, outputs: &mut Outputs) {
        let (function, assigned) = self.parts();
        if assigned.phase != Phase::Resetting {
            return;
        }
        // The reset has cleared the hardware's command register.
        let is_there = is_done && assigned.command.write(Command::quiet(), &mut assigned.physical);
        assigned.phase = if is_there { Phase::Ready } else { Phase::Gone };
        if is_there {
            assigned.follow(function, outputs);
        }
    }

    /// The function has vanished: for the guest it does not answer any more. The caller then calls
    /// `Bus::place_functions`, without a lock on the function.
    pub fn vanish(&mut self, outputs: &mut Outputs) {
        let (function, assigned) = self.parts();
        assigned.vanish(function, outputs);
    }

    /// Whether it works. After an update the host goes on with a reset that is under way.
    pub fn phase(&mut self) -> Phase {
        self.parts().1.phase
    }

    /// Its state as far as the next image needs it to build the function before guests stop.
    pub fn packed(&mut self) -> AssignedFunction {
        let device_number = self.slot().device();
        AssignedFunction { device_number, ..self.parts().1.saved() }
    }

    /// Returns the description of the function that the guest is shown.
    pub fn description(&mut self) -> Description {
        self.parts().1.description
    }

    /// How it may interrupt.
    pub fn interrupts(&mut self) -> Interrupts {
        self.parts().1.vectors.interrupts
    }

    /// The MSI-X vectors that are open.
    pub fn open_vectors(&mut self) -> Vec<u16> {
        let vectors = &self.parts().1.vectors;
        if vectors.interrupts == Interrupts::MsiX { vectors.each().collect() } else { Vec::new() }
    }

    /// Returns whether an MSI-X vector is open.
    pub fn is_open(&mut self, vector: u16) -> bool {
        let words = &self.parts().1.vectors.opened;
        words.get(usize::from(vector) / 64).is_some_and(|word| word >> (vector % 64) & 1 != 0)
    }

    /// The host's side of it.
    pub fn physical(&mut self) -> &mut P {
        &mut self.parts().1.physical
    }
}
