// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's mappings by its own page tables (AMD APM vol. 2, section 5.3), read from the image of its memory.
//!
//! The tables are the guest's: they may lead anywhere, and round in circles. So the depth is the CPU's, entries that
//! lead outside memory are skipped, and the number of tables and of runs is bounded. The upper half comes first: that
//! is where kernels are.

use wire::VcpuRegisters;

use super::image::Image;

/// The maximum number of runs that are kept; more would be of no use, and ELF counts to 65,535.
pub const MOST_RUNS: usize = 32_768;
/// Tables read at most.
const MOST_TABLES: usize = 262_144;

const PRESENT: u64 = 1;
const LARGE: u64 = 1 << 7;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
const CR0_PG: u64 = 1 << 31;
const CR4_LA57: u64 = 1 << 12;
const EFER_LMA: u64 = 1 << 10;

/// Pages that follow each other in both address spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub linear: u64,
    pub gpa: u64,
    pub bytes: u64,
}

struct Walk<'a> {
    image: &'a Image,
    runs: Vec<Run>,
    tables_left: usize,
}

/// Returns the runs that a CPU's own page tables map; none unless it pages in 64-bit mode.
pub fn of(image: &Image, registers: &VcpuRegisters) -> Vec<Run> {
    if registers.cr0 & CR0_PG == 0 || registers.efer & EFER_LMA == 0 {
        return Vec::new();
    }
    let levels = if registers.cr4 & CR4_LA57 != 0 { 5 } else { 4 };
    let mut walk = Walk { image, runs: Vec::new(), tables_left: MOST_TABLES };
    let root = registers.cr3 & ADDRESS;
    for half in [256..512, 0..256] {
        walk.table(root, levels, 0, half);
    }
    walk.runs
}

impl Walk<'_> {
    fn table(&mut self, gpa: u64, level: u32, linear: u64, indices: std::ops::Range<usize>) {
        if self.tables_left == 0 {
            return;
        }
        self.tables_left -= 1;
        let Some(table) = self.image.table(gpa) else { return };
        let page_bytes = 4096_u64 << (9 * (level - 1));
        for index in indices {
            let entry = table[index];
            let linear = canonical(linear + index as u64 * page_bytes, 12 + 9 * level);
            if entry & PRESENT == 0 {
                continue;
            }
            if level == 1 || (entry & LARGE != 0 && level <= 3) {
                self.page(linear, entry & ADDRESS & !(page_bytes - 1), page_bytes);
            } else {
                self.table(entry & ADDRESS, level - 1, linear, 0..512);
            }
        }
    }

    fn page(&mut self, linear: u64, gpa: u64, bytes: u64) {
        // Large pages may reach beyond memory: a direct map does.
        let Some(piece) = self.image.pieces.iter().find(|piece| gpa >= piece.gpa && gpa - piece.gpa < piece.bytes)
        else {
            return;
        };
        let bytes = bytes.min(piece.bytes - (gpa - piece.gpa));
        let has_room = self.runs.len() < MOST_RUNS;
        match self.runs.last_mut() {
            Some(last) if last.linear.wrapping_add(last.bytes) == linear && last.gpa + last.bytes == gpa => {
                last.bytes += bytes;
            }
            _ if has_room => self.runs.push(Run { linear, gpa, bytes }),
            _ => self.tables_left = 0,
        }
    }
}

/// Returns the canonical form of an address: the root's upper half is at the top of the address space.
fn canonical(linear: u64, bits: u32) -> u64 {
    match bits {
        48 | 57 if linear >> (bits - 1) & 1 != 0 => linear | u64::MAX << bits,
        _ => linear,
    }
}
