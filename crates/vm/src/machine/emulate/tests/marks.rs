// SPDX-License-Identifier: MIT OR Apache-2.0
//! Accessed and dirty bits of operands.
use std::cell::Cell;

use super::strings::paged;
use super::*;
use crate::memory::OutOfRange;
use crate::vcpu::Exception;

const ACCESSED: u64 = 1 << 5;
const DIRTY: u64 = 1 << 6;
/// The entry of page 5 in the last table.
const PAGE_5: Gpa = Gpa(0xb000 + 5 * 8);

fn bits(memory: &FakeMemory, gpa: Gpa) -> u64 {
    memory.read_u64(gpa).expect("in memory") & (ACCESSED | DIRTY)
}

/// MOVSD from a device register (mapped at the last page) to page 5, or back.
fn copy(is_from_device: bool) -> (FakeVcpu, FakeMemory) {
    let (mut vcpu, memory) = paged(&[0xa5], [0, DEVICE.0 & !0xfff | 7]);
    let device = 0x1f_f000 + (DEVICE.0 & 0xfff);
    let (source, target) = if is_from_device { (device, 0x5000) } else { (0x5000, device) };
    vcpu.gprs[Gpr::Rsi as usize] = source;
    vcpu.gprs[Gpr::Rdi as usize] = target;
    (vcpu, memory)
}

#[test]
fn a_page_that_an_emulated_store_reaches_is_dirty_and_one_that_is_read_is_accessed() {
    for (is_from_device, page, device) in [(true, ACCESSED | DIRTY, ACCESSED), (false, ACCESSED, ACCESSED | DIRTY)] {
        let (mut vcpu, memory) = copy(is_from_device);
        access(&mut vcpu, &memory, DEVICE, &mut Recorder::default()).unwrap();
        assert_eq!(bits(&memory, PAGE_5), page);
        assert_eq!(bits(&memory, Gpa(0xb000 + 511 * 8)), device);
        assert_eq!([0x8000, 0x9000, 0xa000].map(|gpa| bits(&memory, Gpa(gpa))), [ACCESSED; 3], "and the levels above");
        assert_eq!(bits(&memory, Gpa(0xb000 + 6 * 8)), 0, "no other page");
    }
}

#[test]
fn both_pages_of_an_operand_are_dirty() {
    let (mut vcpu, memory) = paged(&[0x89, 0x03], [510 << 12 | 7, DEVICE.0 & !0xfff | 7]); // mov [rbx], eax
    vcpu.gprs[Gpr::Rbx as usize] = 0x1f_effe;
    access(&mut vcpu, &memory, Gpa(DEVICE.0 & !0xfff), &mut Recorder::default()).unwrap();
    assert_eq!([510, 511].map(|page| bits(&memory, Gpa(0xb000 + page * 8))), [ACCESSED | DIRTY; 2]);
}

#[test]
fn of_an_operand_that_faults_no_page_is_marked() {
    let (mut vcpu, memory) = paged(&[0x89, 0x03], [DEVICE.0 & !0xfff | 7, 0]); // mov [rbx], eax
    vcpu.gprs[Gpr::Rbx as usize] = 0x1f_effe;
    let refused = access(&mut vcpu, &memory, Gpa(DEVICE.0 | 0xffe), &mut Recorder::default());
    let fault = Exception::PageFault { code: 2, address: 0x1f_f000 };
    assert_eq!(refused, Err(fault.into()));
    assert_eq!(bits(&memory, Gpa(0xb000 + 510 * 8)), 0);
}

#[test]
fn what_ins_receives_makes_its_page_dirty() {
    let (mut vcpu, memory) = paged(&[0x6c], [0, 0]); // insb
    vcpu.gprs[Gpr::Rdi as usize] = 0x5000;
    port_string(&mut vcpu, &memory, &strings::transfer(true, false)).unwrap().expect("a step");
    assert_eq!(bits(&memory, PAGE_5), ACCESSED | DIRTY);
}

/// Memory in which another vCPU changes an entry right before it would be marked, so many times.
struct Contended {
    memory: FakeMemory,
    changes_left: Cell<u32>,
    tries: Cell<u32>,
}

impl GuestMemory for Contended {
    fn read(&self, gpa: Gpa, into: &mut [u8]) -> Result<(), OutOfRange> {
        self.memory.read(gpa, into)
    }

    fn write(&self, gpa: Gpa, from: &[u8]) -> Result<(), OutOfRange> {
        self.memory.write(gpa, from)
    }

    fn compare_exchange(&self, gpa: Gpa, size: AccessSize, old: u64, new: u64) -> Result<bool, OutOfRange> {
        const OF_SOFTWARE: u64 = 1 << 9;
        self.tries.set(self.tries.get() + 1);
        if let Some(left) = self.changes_left.get().checked_sub(1) {
            self.changes_left.set(left);
            let changed = self.memory.read_u64(gpa)? ^ OF_SOFTWARE;
            self.memory.write(gpa, &changed.to_le_bytes())?;
        }
        self.memory.compare_exchange(gpa, size, old, new)
    }

    fn size_bytes(&self) -> u64 {
        self.memory.size_bytes()
    }
}

/// Returns the outcome of the copy while an entry changes so many times, and how often an entry was to be marked.
fn contended(changes: u32) -> (Result<(), Refused>, Contended) {
    let (mut vcpu, memory) = copy(true);
    let decoded = decode(&vcpu, &memory, &mut Recent::default()).unwrap();
    let memory = Contended { memory, changes_left: Cell::new(changes), tries: Cell::new(0) };
    (super::super::access(&mut vcpu, &memory, DEVICE, &decoded, &mut Recorder::default()), memory)
}

#[test]
fn an_entry_that_another_vcpu_changes_is_read_again_a_few_times() {
    let (done, contended_memory) = contended(3);
    assert_eq!((done, bits(&contended_memory.memory, PAGE_5)), (Ok(()), ACCESSED | DIRTY));
    let (done, contended_memory) = contended(u32::MAX);
    assert_eq!((done, contended_memory.tries.get()), (Err(Refused::Changed), 8), "the guest executes it again");
    assert_eq!(bits(&contended_memory.memory, PAGE_5), 0);
}
