// SPDX-License-Identifier: MIT OR Apache-2.0
//! QEMU's `edu`, which transfers to any address (QEMU 7.2, docs/specs/edu.txt), in the test image only.

use pci::{Bdf, ConfigSpace};

use super::memory::{self, MemoryError};
use super::{address, pci::Space, port, timer};

const IDENTITY: u32 = 0x11e8_1234;
const MAPPED_AT: u64 = address::DEVICES + 0x3_0000_0000;
const BAR_BYTES: u64 = 1 << 20;
const COMMAND: u16 = 0x04;
const BAR: u16 = 0x10;
const DECODE_AND_MASTER: u32 = 0b110;
/// Registers, and where its own memory is for itself.
const SOURCE: u64 = 0x80;
const TARGET: u64 = 0x88;
const COUNT: u64 = 0x90;
const START: u64 = 0x98;
const OWN_MEMORY: u64 = 0x4_0000;
/// Start, from the device's memory to the machine's.
const WRITE: u64 = 0b11;
const RUNS: u64 = 0b1;
/// A transfer takes a tenth of a second.
const WAIT_MS: u32 = 2000;

/// The device, with its registers mapped.
pub struct Edu(());

impl Edu {
    /// The one on bus 0, which may master the bus from here on; `None` if there is none.
    pub fn find() -> Option<Self> {
        let mut space = Space::by_ports();
        let places = (0..32).filter_map(|device| Bdf::new(0, 0, device, 0));
        let place = places.into_iter().find(|place| space.read(*place, 0) == IDENTITY)?;
        let bar = u64::from(space.read(place, BAR) & !0xf);
        let command = space.read(place, COMMAND) | DECODE_AND_MASTER;
        write_config(place, COMMAND, command);
        map(bar).ok().map(|()| Self(()))
    }

    /// Lets it write so many zeros to a physical address. Returns whether it has finished.
    pub fn write_zeros(&self, at: u64, bytes: u64) -> bool {
        for (register, value) in [(SOURCE, OWN_MEMORY), (TARGET, at), (COUNT, bytes), (START, WRITE)] {
            // SAFETY: the device's registers, mapped uncached. Where it then writes is what the test is about.
            unsafe { ((MAPPED_AT + register) as *mut u64).write_volatile(value) };
        }
        for _ in 0..WAIT_MS {
            // SAFETY: as above.
            if unsafe { ((MAPPED_AT + START) as *const u64).read_volatile() } & RUNS == 0 {
                return true;
            }
            timer::delay_us(1000);
        }
        false
    }
}

fn map(bar: u64) -> Result<(), MemoryError> {
    memory::map_device(MAPPED_AT, bar, BAR_BYTES)
}

fn write_config(place: Bdf, register: u16, value: u32) {
    let word = 1 << 31 | u32::from(place.requester()) << 8 | u32::from(register);
    // SAFETY: address and data port of configuration space, which no other code uses while the host starts.
    unsafe {
        port::write_u32(0xcf8, word);
        port::write_u32(0xcfc, value);
    }
}
