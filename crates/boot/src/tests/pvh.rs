// SPDX-License-Identifier: MIT OR Apache-2.0
use proptest::prelude::*;
use std::string::ToString;

use super::*;
use crate::pvh::{MAGIC, PvhError, parse};

const START: u64 = BASE;
const LIST: u64 = BASE + 0x100;
const MAP: u64 = BASE + 0x400;
const LINE: u64 = BASE + 0x1ff0;
const END: u64 = BASE + 0x4000;

/// Returns the memory that a loader leaves for a host with one module on a PC of 2 GiB.
fn loader() -> TestMemory {
    let mut memory = TestMemory(std::vec![0; (END - BASE) as usize]);
    memory.put_u32(START, MAGIC);
    memory.put_u32(START + 4, 1);
    memory.put_u32(START + 12, 1);
    memory.put_u64s(START + 16, &[LIST, LINE, 0xf_5a20, MAP]);
    memory.put_u32(START + 48, 3);
    memory.put_u64s(LIST, &[0x40_0010, 0x1234, LINE + 0x100, 0]);
    memory.put_u64s(MAP, &[0, 0x9_fc00, 1, 0x9_fc00, 0x400, 2, 0x10_0000, 0x7ff0_0000, 1]);
    memory.put(LINE, b"log=debug console=ttyS0\0");
    memory.put(LINE + 0x100, b"bundle\0");
    memory
}

fn parsed(memory: &TestMemory) -> Result<BootInfo, PvhError> {
    parse(memory, PhysAddr(START))
}

#[test]
fn a_start_info_is_read_with_all_it_points_to() {
    let info = parsed(&loader()).unwrap();
    assert_eq!(info.protocol, Protocol::Pvh);
    assert_eq!(&info.command_line[..], "log=debug console=ttyS0", "also across a page's end");
    assert_eq!(info.rsdp, Some(PhysAddr(0xf_5a20)));
    assert_eq!(info.modules[0].range, range(0x40_0010, 0x40_1244));
    assert_eq!(&info.modules[0].command_line[..], "bundle");
    assert_eq!(info.memory_map.usable().collect::<Vec<_>>(), [range(0, 0x9_f000), range(0x10_0000, 0x8000_0000)]);
    assert_eq!(info.notes(), []);
}

#[test]
fn what_no_host_can_start_from_is_refused() {
    let refused = |change: fn(&mut TestMemory)| {
        let mut memory = loader();
        change(&mut memory);
        parsed(&memory).unwrap_err()
    };
    assert_eq!(refused(|memory| memory.put_u32(START, 0x1bad_b002)), PvhError::BadMagic { found: 0x1bad_b002 });
    assert_eq!(refused(|memory| memory.put_u32(START + 4, 0)), PvhError::NoMemoryMap { version: 0 });
    assert_eq!(refused(|memory| memory.put_u32(START + 48, 0)), PvhError::NoMemoryMap { version: 1 });
    assert_eq!(refused(|memory| memory.put_u32(START + 48, u32::MAX)), PvhError::TooManyRegions);
    assert_eq!(refused(|memory| memory.put_u64s(MAP, &[0, 0, 2, 0, 0, 2, 0, 0, 2])), PvhError::NoUsableMemory);
    let unreadable = PvhError::MemoryMapUnreadable { address: PhysAddr(END - 8), entries: 3 };
    assert_eq!(refused(|memory| memory.put_u64s(START + 40, &[END - 8])), unreadable);
    assert_eq!(refused(|memory| memory.0.truncate(55)), PvhError::StartInfoUnreadable(PhysAddr(START)));
    let text = PvhError::BadMagic { found: 1 }.to_string();
    assert_eq!(text, "PVH start info begins with 0x1 instead of 0x336ec578: start Baton with a PVH loader");
}

#[test]
fn what_a_host_can_do_without_is_noted_and_left_out() {
    let mut memory = loader();
    memory.put_u32(START + 12, 5);
    memory.put_u64s(LIST, &[0x1000, 0, 0, 0, u64::MAX, 2, 0, 0, 0x5000, 0x1000, END, 0, 0x6000, 1, LINE + 0x200, 0]);
    memory.put_u64s(LIST + 4 * 32, &[0x7000, 0x10, 0, 0]);
    memory.put(LINE + 0x200, &[b'm'; 129]);
    memory.put_u64s(START + 24, &[END - 1]);
    memory.0[(END - 1 - BASE) as usize] = b'x';
    memory.put_u64s(MAP, &[0, 0]);
    let info = parsed(&memory).unwrap();
    let expected = [
        Note::AbsurdRegions(1),
        Note::CommandLineUnreadable { module: None },
        Note::AbsurdModule { index: 0 },
        Note::AbsurdModule { index: 1 },
        Note::CommandLineUnreadable { module: Some(2) },
        Note::CommandLineCut { module: Some(3) },
    ];
    assert_eq!(info.notes(), expected);
    assert_eq!(info.modules.iter().map(|module| module.range.start().0).collect::<Vec<_>>(), [0x5000, 0x6000, 0x7000]);
    assert_eq!(info.notes()[2].to_string(), "module 0 ignored: empty or outside physical memory");
}

#[test]
fn a_wild_number_of_modules_ends_soon() {
    let mut memory = loader();
    memory.put_u32(START + 12, u32::MAX);
    let info = parsed(&memory).unwrap();
    assert_eq!(info.notes()[0], Note::TooManyModules { count: u32::MAX });
    memory.put_u64s(START + 16, &[u64::MAX]);
    assert_eq!(parsed(&memory).unwrap().notes()[1], Note::UnreadableModule { index: 0 });
}

#[test]
fn a_command_line_of_exactly_the_limit_is_not_cut() {
    for (bytes, cut) in [(COMMAND_LINE_BYTES, false), (COMMAND_LINE_BYTES + 1, true)] {
        let mut memory = loader();
        memory.put(LINE, &std::vec![b'a'; bytes]);
        memory.put(LINE + bytes as u64, &[0]);
        let info = parsed(&memory).unwrap();
        assert_eq!(info.command_line.len(), COMMAND_LINE_BYTES);
        assert_eq!(info.notes().contains(&Note::CommandLineCut { module: None }), cut);
    }
}

#[test]
fn bytes_that_are_no_text_become_question_marks() {
    let mut memory = loader();
    memory.put(LINE, b"a\xffb\xc3\0");
    assert_eq!(&parsed(&memory).unwrap().command_line[..], "a?b?");
}

proptest! {
    #[test]
    fn no_start_info_whatever_panics(changes in prop::collection::vec((0u64..0x4f0, any::<u64>(), 0u32..64), 0..12)) {
        let mut memory = loader();
        for (offset, value, shift) in changes {
            memory.put_u64s(BASE + offset, &[value >> shift]);
        }
        // The magic and version survive, so that the code after their check is reached.
        memory.put_u32(START, MAGIC);
        memory.put_u32(START + 4, 1);
        if let Ok(info) = parsed(&memory) {
            prop_assert!(info.memory_map.usable_bytes() > 0);
            prop_assert!(info.modules.iter().all(|module| !module.range.is_empty()));
        }
    }
}
