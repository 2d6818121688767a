// SPDX-License-Identifier: MIT OR Apache-2.0
//! Identify Controller, on a controller that has no other user.

use crate::registers::{ACQ, ADMIN_TAIL, AQA, ASQ, CAP, CC, CSTS, INTMS};
use crate::serial::FIELD_BYTES;
use crate::{Memory, Problem, Registers, Serial};

/// Bytes of memory that the controller uses: a page each for submission queue, completion queue and answer.
pub const DMA_BYTES: u64 = 3 * PAGE_BYTES;

const PAGE_BYTES: u64 = 4096;
const COMPLETIONS: u64 = PAGE_BYTES;
const ANSWER: u64 = 2 * PAGE_BYTES;

/// Entries of each queue: the fewest that are possible. The register has one less.
const QUEUE_ENTRIES: u32 = 2;
/// CC: entries of 64 and 16 bytes, as powers of two; enabled. Pages of 4 KiB, and the NVM command set, are zeros.
const ENABLED: u32 = 4 << 20 | 6 << 16 | 1;
/// CC: no I/O command set, and all that are supported.
const ADMIN_ONLY: u32 = 0b111 << 4;
const ALL_SETS: u32 = 0b110 << 4;
const IS_READY: u32 = 1 << 0;
const IS_FATAL: u32 = 1 << 1;

/// CAP's unit of time.
const TIMEOUT_UNIT_US: u32 = 500_000;
/// The most that is waited for a controller that states more, up to 128 seconds.
const MAX_TIMEOUT_US: u32 = 10_000_000;
/// For one command: none that a controller executes at once.
const COMMAND_US: u32 = 5_000_000;

const IDENTIFY: u64 = 0x06;
const COMMAND_ID: u64 = 1;
/// Identify's structure is the controller's.
const CONTROLLER: u64 = 1;
/// The serial number in the answer (figure 275).
const SERIAL: u64 = 4;

/// Asks a controller for its serial number. It is disabled afterwards, whatever happens. `memory` has [`DMA_BYTES`],
/// and the controller reaches it at `address`, a multiple of 4,096. Takes as long as the controller, up to 25 seconds.
///
/// # Errors
/// [`Problem`]: the controller does not report its serial number.
pub fn serial(registers: &mut dyn Registers, memory: &mut dyn Memory, address: u64) -> Result<Serial, Problem> {
    let capabilities = registers.read64(CAP);
    if capabilities == u64::MAX {
        return Err(Problem::Gone);
    }
    let smallest_page = PAGE_BYTES << (capabilities >> 48 & 0xf);
    if smallest_page > PAGE_BYTES {
        return Err(Problem::PageSize(smallest_page));
    }
    let timeout = (capabilities >> 24) as u8;
    let timeout_us = (u32::from(timeout) * TIMEOUT_UNIT_US).clamp(TIMEOUT_UNIT_US, MAX_TIMEOUT_US);
    disable(registers, timeout_us)?;
    let answer = enable(registers, address, ENABLED | command_sets(capabilities), timeout_us)
        .and_then(|()| identify(registers, memory, address));
    let disabled = disable(registers, timeout_us);
    answer.and(disabled).and_then(|()| Serial::of_field(field(memory)))
}

fn command_sets(capabilities: u64) -> u32 {
    match (capabilities >> 44 & 1, capabilities >> 43 & 1) {
        (1, _) => ADMIN_ONLY,
        (_, 1) => ALL_SETS,
        _ => 0,
    }
}

fn enable(registers: &mut dyn Registers, address: u64, configuration: u32, timeout_us: u32) -> Result<(), Problem> {
    registers.write32(INTMS, u32::MAX);
    registers.write32(AQA, (QUEUE_ENTRIES - 1) << 16 | (QUEUE_ENTRIES - 1));
    registers.write64(ASQ, address);
    registers.write64(ACQ, address + COMPLETIONS);
    registers.write32(CC, configuration);
    wait_until(registers, timeout_us, |status| status & IS_READY != 0)
}

fn disable(registers: &mut dyn Registers, timeout_us: u32) -> Result<(), Problem> {
    let configuration = registers.read32(CC);
    registers.write32(CC, configuration & !1);
    match wait_until(registers, timeout_us, |status| status & IS_READY == 0) {
        // A reset clears it.
        Err(Problem::Fatal) => Ok(()),
        result => result,
    }
}

fn wait_until(registers: &mut dyn Registers, us: u32, is_so: impl Fn(u32) -> bool) -> Result<(), Problem> {
    for _ in 0..us {
        match registers.read32(CSTS) {
            u32::MAX => return Err(Problem::Gone),
            status if is_so(status) => return Ok(()),
            status if status & IS_FATAL != 0 => return Err(Problem::Fatal),
            _ => registers.pause(),
        }
    }
    Err(Problem::NotReady)
}

fn identify(registers: &mut dyn Registers, memory: &mut dyn Memory, address: u64) -> Result<(), Problem> {
    // The completion's phase bit is zero before, and one in the first round.
    (0..DMA_BYTES).step_by(8).for_each(|offset| memory.write(offset, 0));
    memory.write(0, COMMAND_ID << 16 | IDENTIFY);
    memory.write(24, address + ANSWER);
    memory.write(40, CONTROLLER);
    registers.write32(ADMIN_TAIL, 1);
    for _ in 0..COMMAND_US {
        let last = memory.read(COMPLETIONS + 8);
        let (id, phase_and_status) = (last >> 32 & 0xffff, last >> 48);
        if phase_and_status & 1 != 0 {
            let status = (phase_and_status >> 1 & 0x7ff) as u16;
            return if status == 0 && id == COMMAND_ID { Ok(()) } else { Err(Problem::Refused(status)) };
        }
        registers.pause();
    }
    Err(Problem::NoCompletion)
}

/// The field of the answer, in three words.
fn field(memory: &mut dyn Memory) -> [u8; FIELD_BYTES] {
    let mut bytes = [0; 24];
    for (index, word) in bytes.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&memory.read(ANSWER + index as u64 * 8).to_le_bytes());
    }
    let mut field = [0; FIELD_BYTES];
    field.copy_from_slice(&bytes[SERIAL as usize..]);
    field
}

#[cfg(test)]
#[path = "identify_tests.rs"]
mod tests;
