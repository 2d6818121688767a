// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory and the log: frames, page tables, records.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use frames::nodes::{NodeMap, NodeRange};
use frames::{FrameRange, Frames, LEDGER_SLOTS, ScrubPiece};
use klog::{
    Clock, Copied, Cursor, Foreign, Level, MAXIMUM_MODULE_BYTES, MAXIMUM_TEXT_BYTES, MINIMUM_RING_WORDS, Memory, Reach,
    Record, Ring, Step,
};
use paging::{Flags, Format, Host, Nested, TableMemory, Tables};
use units::{PAGE_BYTES, PageSize, PhysAddr, PhysRange};

use crate::input::Input;

fn range(input: &mut Input<'_>) -> Option<PhysRange> {
    let page = if input.bool() { PAGE_BYTES } else { 1 };
    PhysRange::from_start(PhysAddr(input.number().wrapping_mul(page)), input.number().wrapping_mul(page))
}

/// Requests for frames: no frame has two owners, and none is lost.
pub fn frames(data: &[u8]) {
    let mut input = Input(data);
    let mut slots = vec![PhysRange::default(); LEDGER_SLOTS];
    let mut ledger =
        Ledger { frames: Frames::in_slots(&mut slots), owned: Vec::new(), pieces: Vec::new(), reserved_bytes: 0 };
    if input.bool() {
        ledger.frames.set_nodes(nodes(&mut input));
    }
    while !input.is_empty() {
        let operation = input.u8() % 12;
        let Some(wanted) = range(&mut input) else { continue };
        let alignment = input.choose(&PageSize::ALL);
        let which = input.u8();
        ledger.obey(operation, wanted, alignment, which);
    }
    let owned_bytes: u64 = ledger.owned.iter().map(|(range, _)| range.bytes()).sum();
    let Ledger { frames, reserved_bytes, .. } = ledger;
    // A retired frame is counted with its owner's, if it has one, and never as free.
    let counted = frames.free_bytes() + owned_bytes + reserved_bytes;
    let total = frames.total_bytes();
    assert!(counted <= total && total <= counted.saturating_add(frames.retired_bytes()), "no frame is lost");
}

struct Ledger<'m> {
    frames: Frames<'m>,
    owned: Vec<(FrameRange, bool)>,
    pieces: Vec<ScrubPiece>,
    reserved_bytes: u64,
}

impl Ledger<'_> {
    fn obey(&mut self, operation: u8, wanted: PhysRange, alignment: PageSize, which: u8) {
        let free_before = self.frames.free_bytes();
        match operation {
            0 => {
                if !self.owned.iter().any(|(own, _)| overlap(own.range(), wanted)) {
                    let _ = self.frames.add_free(wanted);
                }
            }
            1 => {
                let _ = self.frames.reserve(wanted);
                self.reserved_bytes += free_before - self.frames.free_bytes();
            }
            2 | 3 if !self.owned.is_empty() => {
                let (range, is_guests) = self.owned.swap_remove(usize::from(which) % self.owned.len());
                let freed = if is_guests { self.frames.free_from_guest(range) } else { self.frames.free(range) };
                self.owned.extend(freed.err().map(|error| (error.range, is_guests)));
            }
            4 => drop(self.frames.retire(wanted)),
            5 => drop(self.frames.set_aside(alignment, wanted.bytes() / alignment.bytes(), wanted.start().0)),
            6 => self.pieces.extend(self.frames.begin_scrub(wanted.bytes())),
            7 => {
                let piece = self.pieces.pop();
                self.pieces.extend(piece.and_then(|piece| self.frames.end_scrub(piece).err()));
            }
            8 => {
                let node = (which < 4).then_some(which);
                let taken = self.frames.allocate_for_guest(wanted.bytes(), alignment, node);
                let _ = taken.map(|taken| self.take(taken.range, true));
            }
            9 => drop(self.frames.claim(wanted).map(|taken| self.take(taken, false))),
            10 => {
                let taken = self.frames.allocate_below(wanted.bytes(), alignment, wanted.start());
                let _ = taken.map(|taken| self.take(taken, false));
            }
            _ => drop(self.frames.allocate(wanted.bytes(), alignment).map(|taken| self.take(taken, false))),
        }
    }

    fn take(&mut self, taken: FrameRange, is_guests: bool) {
        let is_owned = self.owned.iter().any(|(own, _)| overlap(own.range(), taken.range()));
        let is_scrubbed = self.pieces.iter().any(|piece| overlap(piece.range(), taken.range()));
        assert!(!is_owned && !is_scrubbed, "no frame has two owners");
        self.owned.push((taken, is_guests));
    }
}

fn overlap(one: PhysRange, other: PhysRange) -> bool {
    one.intersection(other).is_some()
}

/// Returns what firmware may state of nodes, against any memory map: every address has at most one node.
fn nodes(input: &mut Input<'_>) -> NodeMap {
    let claims: Vec<_> =
        (0..input.u8() % 64).filter_map(|_| Some(NodeRange { node: input.u8() % 16, range: range(input)? })).collect();
    let map: Vec<_> = (0..input.u8() % 8).filter_map(|_| range(input)).collect();
    let (nodes, contradictions) = NodeMap::build(&claims, &map);
    contradictions.kept().iter().for_each(|contradiction| drop(contradiction.to_string()));
    assert!(nodes.ranges().windows(2).all(|pair| pair[0].range.end() <= pair[1].range.start()), "sorted, apart");
    let is_claimed =
        |known: &NodeRange| claims.iter().any(|claim| claim.node == known.node && overlap(claim.range, known.range));
    assert!(nodes.ranges().iter().all(is_claimed), "memory is on a node that claims it");
    nodes
}

/// Table frames in a map; any use of one that is not out is a panic.
struct TableFrames {
    frames: BTreeMap<u64, Box<[u64; 512]>>,
    budget: usize,
    next: u64,
}

impl TableMemory for TableFrames {
    fn allocate(&mut self) -> Option<PhysAddr> {
        if self.frames.len() >= self.budget {
            return None;
        }
        self.next += PAGE_BYTES;
        self.frames.insert(self.next, Box::new([0; 512]));
        Some(PhysAddr(self.next))
    }
    fn free(&mut self, table: PhysAddr) {
        self.frames.remove(&table.0).expect("a freed table was allocated");
    }
    fn read(&self, table: PhysAddr, index: usize) -> u64 {
        self.frames[&table.0][index]
    }
    fn write(&mut self, table: PhysAddr, index: usize, entry: u64) {
        self.frames.get_mut(&table.0).expect("a written table was allocated")[index] = entry;
    }
}

/// Changes of page tables: they translate as the last change reported, a refused change changes nothing, and every
/// table comes back in the end.
pub fn paging(data: &[u8]) {
    let mut input = Input(data);
    if input.bool() { change_tables::<Host>(&mut input) } else { change_tables::<Nested>(&mut input) }
}

fn change_tables<F: Format>(input: &mut Input<'_>) {
    let mut memory = TableFrames { frames: BTreeMap::new(), budget: usize::from(input.u8() & 31), next: 0 };
    let largest = input.choose(&PageSize::ALL);
    let Ok(mut tables) = Tables::<F>::new(&mut memory, largest) else { return };
    while !input.is_empty() {
        let operation = input.u8() % 4;
        let (address, bytes) = (place(input), input.number().wrapping_mul(PAGE_BYTES) & 0xff_ffff_ffff);
        let flags = Flags::from_bits_truncate(input.u64());
        let (phys, before) = (PhysAddr(place(input)), tables.translate(&memory, address));
        let outcome = match operation {
            0 | 1 => tables.map(&mut memory, address, phys, bytes, flags),
            2 => tables.unmap(&mut memory, address, bytes),
            _ => tables.protect(&mut memory, address, bytes, flags),
        };
        let after = tables.translate(&memory, address);
        match (outcome, operation) {
            (Err(error), _) => {
                drop(error.to_string());
                assert_eq!(after.map(|page| (page.phys, page.flags)), before.map(|page| (page.phys, page.flags)));
            }
            (Ok(()), _) if bytes == 0 => {}
            (Ok(()), 0 | 1) => assert_eq!(after.map(|page| page.phys), Some(phys)),
            (Ok(()), 2) => assert_eq!(after, None),
            (Ok(()), _) => assert_eq!(after.map(|page| page.phys), before.map(|page| page.phys)),
        }
    }
    tables.free_all(&mut memory);
    assert!(memory.frames.is_empty(), "every table comes back");
}

fn place(input: &mut Input<'_>) -> u64 {
    let base = input.choose(&[0, 1 << 21, 1 << 30, 1 << 39, 0x7fff_ffff_f000, 0xffff_8000_0000_0000, !0xfff]);
    u64::wrapping_add(base, input.number().wrapping_mul(if input.u8() == 0 { 1 } else { PAGE_BYTES }))
}

/// Records written and read: none is out of order, and those that are gone are counted.
pub fn klog(data: &[u8]) {
    let mut input = Input(data);
    let words: Vec<AtomicU64> = (0..MINIMUM_RING_WORDS).map(|_| AtomicU64::new(0)).collect();
    let clock = Clock { origin: 0, hz: 1_000_000_000 };
    let ring = Ring::new(&words, input.u32(), clock).expect("large enough");
    let (mut cursor, mut copied, mut written) = (Cursor::start(), Copied::new(), 0);
    while !input.is_empty() {
        if input.u8() & 3 != 0 {
            let level = input.choose(&[Level::Error, Level::Warn, Level::Info, Level::Debug]);
            let (module, text) = (String::from_utf8_lossy(input.string()), String::from_utf8_lossy(input.string()));
            let ticks = input.u64();
            assert_eq!(ring.write(level, &module, format_args!("{text}"), || ticks), written);
            written += 1;
        } else {
            let before = cursor.sequence();
            match cursor.next(&ring, Reach::Complete, &mut copied) {
                Step::Nothing => assert_eq!(before, written),
                Step::Lost(lost) => assert_eq!(cursor.sequence(), before + lost),
                Step::Record => assert_eq!(check_record(&copied.record(0, clock)), before),
            }
        }
    }
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
    assert_eq!(read_all(&Foreign::adopt(&bytes).expect("a ring")) + Cursor::oldest(&ring).sequence(), written);
}

/// A ring that another image has left, of any bytes behind a header that passes: readers end, and show lines.
pub fn klog_foreign(data: &[u8]) {
    let words: Vec<AtomicU64> = (0..MINIMUM_RING_WORDS).map(|_| AtomicU64::new(0)).collect();
    let ring = Ring::new(&words, 0, Clock::default()).expect("large enough");
    for number in 0..20 {
        ring.write(Level::Info, "fuzz", format_args!("record {number}"), || number);
    }
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
    let mut input = Input(data);
    while !input.is_empty() {
        let at = usize::from(input.u8()) << 8 | usize::from(input.u8());
        let count = bytes.len();
        bytes[at % count] = input.u8();
    }
    if let Ok(foreign) = Foreign::adopt(&bytes) {
        let _ = read_all(&foreign);
        let _ = (Cursor::at(&foreign, 7), Cursor::since(&foreign, 7));
    }
    let _ = Foreign::adopt(data).map(|foreign| read_all(&foreign));
}

/// Returns how many records a ring holds.
fn read_all(ring: &impl Memory) -> u64 {
    let (mut cursor, mut copied, mut count) = (Cursor::oldest(ring), Copied::new(), 0);
    loop {
        match cursor.next(ring, Foreign::REACH, &mut copied) {
            Step::Nothing => return count,
            Step::Lost(_) => {}
            Step::Record => {
                check_record(&copied.record(0, ring.clock()));
                count += 1;
                assert!(count <= ring.data_words() as u64, "a reader ends");
            }
        }
    }
}

fn check_record(record: &Record<'_>) -> u64 {
    assert!(record.module.len() <= MAXIMUM_MODULE_BYTES && record.text.len() <= MAXIMUM_TEXT_BYTES);
    assert!(!record.to_string().chars().any(char::is_control), "a record is one line");
    record.sequence
}

/// The memory of a timeline that another image has left, of any bytes behind a header that passes, and of any bytes at
/// all: it is adopted, read and gone on with.
pub fn timeline(data: &[u8]) {
    let (given, _) = data.as_chunks::<8>();
    let given: Vec<AtomicU64> = given.iter().map(|word| AtomicU64::new(u64::from_le_bytes(*word))).collect();
    go_on(&given);
    let words: Vec<AtomicU64> = (0..timeline::ring_words(64)).map(|_| AtomicU64::new(0)).collect();
    timeline::Ring::new(&words, 1).expect("large enough");
    // From the word that counts the records on.
    words[3..]
        .iter()
        .zip(&given)
        .for_each(|(place, word)| place.store(word.load(Ordering::Relaxed), Ordering::Relaxed));
    assert!(go_on(&words), "the header passes");
}

/// Returns whether there is a ring to go on in.
fn go_on(words: &[AtomicU64]) -> bool {
    let Ok(ring) = timeline::Ring::adopt(words) else { return false };
    let left = (ring.oldest()..ring.written()).filter_map(|number| ring.get(number)).count();
    assert!(left * 2 <= words.len(), "no more records than memory");
    let number = ring.written();
    ring.write(timeline::Kind::Begin, timeline::Name::Kick, 7, || 9);
    assert_eq!(ring.get(number).map(|point| (point.ticks, point.argument)), Some((9, 7)));
    true
}
