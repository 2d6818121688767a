// SPDX-License-Identifier: MIT OR Apache-2.0
//! A paused guest, as the control channel reads it: memory and registers for a vmcore, and its state.
//!
//! While a guest is paused, its run is held here as well. The code that ends or resumes it takes it out first, so that
//! its memory is given back when it has ended, whether a client reads or not.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use spin::Mutex;
use vm::vcpu::{Gpr, Segment, SegmentName, TableRegister, VcpuState};
use wire::{DescriptorTable, MAX_MEMORY_BYTES, MemoryRange, SegmentRegister, VcpuRegisters};

/// Memory searched at one request for something that is not zero: no request may keep the CPU.
const SEARCH_BYTES: u64 = 1 << 20;
/// Zeroes are left out in pieces of this size.
const PIECE_BYTES: u64 = 64;
/// The longest period of a pattern with which kernels fill memory: a byte, an instruction, a word.
const PATTERN_BYTES: usize = 8;
/// A pattern goes over the line once where it fills at least so much.
const LEAST_FILLED_BYTES: u64 = 4 * PIECE_BYTES;

/// A run of a guest with stopped vCPUs.
pub trait Frozen: Send + Sync {
    /// Returns where it has memory.
    fn layout(&self) -> Vec<MemoryRange>;
    /// Copies memory; `None` where there is none.
    fn read(&self, gpa: u64, into: &mut [u8]) -> Option<()>;
    /// A vCPU's registers; `None` while it does not stand still, or where there is no such one.
    fn registers(&self, vcpu: u32) -> Option<VcpuRegisters>;
    /// Its state but for its memory; `None` while CPUs are saving it.
    ///
    /// # Errors
    /// It cannot be saved.
    fn saved(&self) -> Result<Option<Arc<[u8]>>, String>;
}

/// The run of a guest while it is paused.
#[derive(Default)]
pub struct PausedRun(Mutex<Option<Arc<dyn Frozen>>>);

impl PausedRun {
    /// Holds the run of a guest that is paused now.
    pub fn hold(&self, run: Arc<dyn Frozen>) {
        *self.0.lock() = Some(run);
    }

    /// Releases it: the guest is not paused any more.
    pub fn release(&self) {
        // This may drop the last reference: not under the lock.
        let run = self.0.lock().take();
        drop(run);
    }

    /// Reads the run, if it is paused.
    pub fn read<T>(&self, read: impl FnOnce(&dyn Frozen) -> T) -> Option<T> {
        self.0.lock().as_deref().map(read)
    }
}

/// Memory that is not zero: `bytes`, `times` over. From its end up to `next_gpa` all is zero.
pub struct Stretch {
    /// Its first address.
    pub gpa: u64,
    pub bytes: Vec<u8>,
    pub times: u32,
    /// The address to go on at.
    pub next_gpa: u64,
}

/// The first memory from `from` on that is not zero, as much as one answer takes.
pub fn next_memory(run: &dyn Frozen, from: u64, to: u64) -> Option<Stretch> {
    let to = to.max(from);
    let limit = from.saturating_add(SEARCH_BYTES).min(to);
    let mut gpa = from;
    while gpa < limit {
        let mut piece = [0; PIECE_BYTES as usize];
        let count = (PIECE_BYTES - gpa % PIECE_BYTES).min(to - gpa);
        let piece = piece.get_mut(..count as usize)?;
        run.read(gpa, piece)?;
        if piece.iter().any(|&byte| byte != 0) {
            return filled(run, gpa, piece, limit).or_else(|| stretch(run, gpa, to));
        }
        gpa += count;
    }
    Some(Stretch { gpa, bytes: Vec::new(), times: 1, next_gpa: gpa })
}

/// Memory that is one pattern from `gpa` on, where `piece` is found; `None` where it is not, or not enough of it.
fn filled(run: &dyn Frozen, gpa: u64, piece: &[u8], limit: u64) -> Option<Stretch> {
    let (pattern, rest) = piece.split_first_chunk::<PATTERN_BYTES>()?;
    let is_whole = piece.len() as u64 == PIECE_BYTES;
    if !is_whole || rest.chunks(PATTERN_BYTES).any(|chunk| chunk != pattern) {
        return None;
    }
    let mut next_gpa = gpa + PIECE_BYTES;
    let mut other = [0; PIECE_BYTES as usize];
    while next_gpa + PIECE_BYTES <= limit && run.read(next_gpa, &mut other).is_some() && other == *piece {
        next_gpa += PIECE_BYTES;
    }
    let bytes = next_gpa - gpa;
    let times = (bytes / PATTERN_BYTES as u64) as u32;
    (bytes >= LEAST_FILLED_BYTES).then(|| Stretch { gpa, bytes: pattern.to_vec(), times, next_gpa })
}

/// Reads as much memory from `gpa` on as an answer takes.
fn stretch(run: &dyn Frozen, gpa: u64, to: u64) -> Option<Stretch> {
    let mut bytes = vec![0; (to - gpa).min(MAX_MEMORY_BYTES as u64) as usize];
    run.read(gpa, &mut bytes)?;
    let next_gpa = gpa + bytes.len() as u64;
    bytes.truncate(bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1));
    Some(Stretch { gpa, bytes, times: 1, next_gpa })
}

/// Returns all registers that a vmcore holds.
pub fn registers_of(vcpu: &dyn VcpuState) -> VcpuRegisters {
    use SegmentName::{Cs, Ds, Es, Fs, Gs, Ldtr, Ss, Tr};
    VcpuRegisters {
        gprs: Gpr::ALL.map(|register| vcpu.gpr(register)),
        rip: vcpu.rip(),
        rflags: vcpu.rflags().bits(),
        cr0: vcpu.cr0(),
        cr2: vcpu.cr2(),
        cr3: vcpu.cr3(),
        cr4: vcpu.cr4(),
        efer: vcpu.efer(),
        segments: [Es, Cs, Ss, Ds, Fs, Gs, Ldtr, Tr].map(|name| segment(vcpu.segment(name))),
        gdtr: table(vcpu.gdtr()),
        idtr: table(vcpu.idtr()),
        kernel_gs_base: vcpu.kernel_gs_base(),
    }
}

fn segment(from: Segment) -> SegmentRegister {
    let Segment { selector, rights, limit, base } = from;
    SegmentRegister { selector, attributes: rights.packed(), limit, base }
}

fn table(from: TableRegister) -> DescriptorTable {
    DescriptorTable { base: from.base, limit: from.limit }
}
