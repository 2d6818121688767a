// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random requests against the ledger and against a naive model, one state and one byte of content per frame, under
//! every policy, while other threads write records.

use std::thread;

use arrayvec::ArrayVec;
use frames::nodes::{NodeMap, NodeRange};
use frames::records::{Block, Progress, Record, Records, Shape, Tails, Zone};
use frames::{FrameRange, FrameState, Frames, GuestFrames, LEDGER_SLOTS, PageSize, PhysAddr, PhysRange, ScrubPiece};
use proptest::prelude::*;
use units::{KIB, MIB};

const FRAMES: usize = 3072;
const FRAME: u64 = 4096;
/// Threads that write records meanwhile, where records are deferred.
const WRITERS: usize = 2;

#[derive(Clone, Copy, Debug)]
enum Policy {
    Extents,
    Eager(Tails),
    Deferred(Tails),
}

const POLICIES: [Policy; 5] = [
    Policy::Extents,
    Policy::Eager(Tails::Write),
    Policy::Eager(Tails::Omit),
    Policy::Deferred(Tails::Write),
    Policy::Deferred(Tails::Omit),
];

#[derive(Clone, Copy, Debug)]
enum Request {
    Allocate { frames: u64, alignment: PageSize, limit: Option<u64> },
    AllocateForGuest { frames: u64, alignment: PageSize, node: Option<u8> },
    Claim { first: u64, frames: u64 },
    Free { which: prop::sample::Index },
    SplitAndFree { which: prop::sample::Index, frames: u64 },
    Retire { first: u64, frames: u64 },
    BeginScrub { frames: u64 },
    EndScrub { which: prop::sample::Index },
}

fn request() -> impl Strategy<Value = Request> {
    let alignment = || prop::sample::select(&PageSize::ALL[..2]);
    let limit = prop::option::of(0..FRAMES as u64 * FRAME);
    let first = || 0..FRAMES as u64;
    let which = any::<prop::sample::Index>;
    prop_oneof![
        4 => (0u64..600, alignment(), limit).prop_map(|(frames, alignment, limit)| Request::Allocate { frames, alignment, limit }),
        3 => (1u64..800, alignment(), prop::option::of(0u8..3)).prop_map(|(frames, alignment, node)| Request::AllocateForGuest { frames, alignment, node }),
        1 => (first(), 0u64..40).prop_map(|(first, frames)| Request::Claim { first, frames }),
        4 => which().prop_map(|which| Request::Free { which }),
        1 => (which(), 1u64..30).prop_map(|(which, frames)| Request::SplitAndFree { which, frames }),
        1 => (first(), 0u64..3).prop_map(|(first, frames)| Request::Retire { first, frames }),
        2 => (1u64..600).prop_map(|frames| Request::BeginScrub { frames }),
        2 => which().prop_map(|which| Request::EndScrub { which }),
    ]
}

/// The model's knowledge of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Truth {
    state: FrameState,
    is_set_aside: bool,
    is_scrubbed_now: bool,
    is_retired: bool,
    holds_zero: bool,
}

impl Truth {
    /// Returns what the ledger is to report of it.
    fn state(self) -> FrameState {
        match (self.state, self.is_retired, self.is_set_aside) {
            (FrameState::Absent, ..) => FrameState::Absent,
            (_, true, _) => FrameState::Retired,
            (FrameState::Free, _, true) => FrameState::FreeHuge,
            (state, ..) => state,
        }
    }

    fn may_be_had(self) -> bool {
        self.state() == FrameState::Free && !self.is_scrubbed_now
    }
}

struct World<'m> {
    frames: Frames<'m>,
    model: Vec<Truth>,
    owned: Vec<(FrameRange, bool)>,
    pieces: Vec<ScrubPiece>,
}

fn range(start: u64, end: u64) -> PhysRange {
    PhysRange::new(PhysAddr(start), PhysAddr(end)).unwrap()
}

fn frames_of(range: PhysRange) -> core::ops::Range<usize> {
    (range.start().0 / FRAME) as usize..(range.end().0 / FRAME) as usize
}

fn run(first: u64, frames: u64) -> PhysRange {
    range(first * FRAME, (first + frames).min(FRAMES as u64) * FRAME)
}

/// 12 MiB with a hole from 640 KiB to 1 MiB and another inside a huge frame; the nodes' border is inside a huge frame,
/// too.
const MEMORY: [(u64, u64); 3] = [(0, 640 * KIB), (MIB, 5 * MIB), (5 * MIB + 2 * FRAME, 12 * MIB)];
const BORDER: u64 = 7 * MIB;

fn memory() -> impl Iterator<Item = PhysRange> + Clone {
    MEMORY.into_iter().map(|(start, end)| range(start, end))
}

impl<'m> World<'m> {
    fn new(slots: &'m mut [PhysRange]) -> Self {
        let absent = Truth {
            state: FrameState::Absent,
            is_set_aside: false,
            is_scrubbed_now: false,
            is_retired: false,
            holds_zero: false,
        };
        let frames = Frames::in_slots(slots);
        let mut world = Self { frames, model: vec![absent; FRAMES], owned: Vec::new(), pieces: Vec::new() };
        for part in memory() {
            world.frames.add_free(part).unwrap();
            world.model[frames_of(part)].fill(Truth { state: FrameState::Free, ..absent });
        }
        let nodes = [(0, 0, BORDER), (1, BORDER, 12 * MIB)];
        let claims = nodes.map(|(node, start, end)| NodeRange { range: range(start, end), node });
        let (nodes, contradictions) = NodeMap::build(&claims, &memory().collect::<Vec<_>>());
        assert!(contradictions.kept().is_empty());
        world.frames.set_nodes(nodes);
        world.frames.set_aside(PageSize::Mib2, 2, 0).unwrap();
        let set_aside: Vec<_> = world.frames.set_aside_ranges().collect();
        assert_eq!(set_aside.len(), 2, "one on each node");
        set_aside.into_iter().for_each(|part| world.each(part, |frame| frame.is_set_aside = true));
        world
    }

    fn each(&mut self, range: PhysRange, change: impl FnMut(&mut Truth)) {
        self.model[frames_of(range)].iter_mut().for_each(change);
    }

    fn all(&self, range: PhysRange, is_so: impl Fn(Truth) -> bool) -> bool {
        !range.is_empty() && self.model[frames_of(range)].iter().all(|frame| is_so(*frame))
    }

    /// Gives this memory an owner, which writes it.
    fn take(&mut self, taken: FrameRange, state: FrameState, may_be_had: impl Fn(Truth) -> bool) {
        assert!(self.all(taken.range(), may_be_had), "a frame never has two owners");
        self.each(taken.range(), |frame| (frame.state, frame.holds_zero) = (state, false));
        self.owned.push((taken, state == FrameState::Guest));
    }

    fn give_back(&mut self, range: FrameRange, is_guests: bool) {
        self.each(range.range(), |frame| frame.state = FrameState::Free);
        let freed = if is_guests { self.frames.free_from_guest(range) } else { self.frames.free(range) };
        freed.unwrap();
    }

    /// Returns whether any place would have done.
    fn could_hold(
        &self,
        from: u64,
        frames: u64,
        alignment: PageSize,
        limit: u64,
        may_be_had: impl Fn(Truth) -> bool,
    ) -> bool {
        let (count, step) = (frames.max(1) as usize, (alignment.bytes() / FRAME) as usize);
        let end = FRAMES.min((limit / FRAME) as usize);
        ((from / FRAME) as usize..(end + 1).saturating_sub(count))
            .filter(|first| first.is_multiple_of(step))
            .any(|first| self.model[first..first + count].iter().all(|frame| may_be_had(*frame)))
    }

    fn obey(&mut self, request: Request) {
        match request {
            Request::Allocate { frames, alignment, limit } => self.allocate(frames, alignment, limit),
            Request::AllocateForGuest { frames, alignment, node } => self.allocate_for_guest(frames, alignment, node),
            Request::Claim { first, frames } => {
                let wanted = run(first, frames);
                let claimed = self.frames.claim(wanted);
                assert_eq!(claimed.is_ok(), self.all(wanted, Truth::may_be_had));
                claimed.into_iter().for_each(|claimed| self.take(claimed, FrameState::Host, Truth::may_be_had));
            }
            Request::Free { which } if !self.owned.is_empty() => {
                let (freed, is_guests) = self.owned.swap_remove(which.index(self.owned.len()));
                self.give_back(freed, is_guests);
            }
            Request::SplitAndFree { which, frames } if !self.owned.is_empty() => {
                let (whole, is_guests) = self.owned.swap_remove(which.index(self.owned.len()));
                match whole.split(frames * FRAME) {
                    Ok((freed, kept)) => {
                        self.give_back(freed, is_guests);
                        self.owned.push((kept, is_guests));
                    }
                    Err(whole) => self.owned.push((whole, is_guests)),
                }
            }
            Request::Retire { first, frames } => {
                self.frames.retire(run(first, frames)).unwrap();
                self.each(run(first, frames), |frame| frame.is_retired |= frame.state != FrameState::Absent);
            }
            Request::BeginScrub { frames } => {
                if let Some(piece) = self.frames.begin_scrub(frames * FRAME) {
                    assert!(self.all(piece.range(), |frame| frame.state == FrameState::Free && !frame.is_scrubbed_now));
                    assert!(piece.range().bytes() <= frames * FRAME);
                    self.each(piece.range(), |frame| frame.is_scrubbed_now = true);
                    self.pieces.push(piece);
                }
            }
            Request::EndScrub { which } if !self.pieces.is_empty() => {
                let piece = self.pieces.swap_remove(which.index(self.pieces.len()));
                self.each(piece.range(), |frame| (frame.holds_zero, frame.is_scrubbed_now) = (true, false));
                self.frames.end_scrub(piece).unwrap();
            }
            Request::Free { .. } | Request::SplitAndFree { .. } | Request::EndScrub { .. } => {}
        }
    }

    fn allocate(&mut self, frames: u64, alignment: PageSize, limit: Option<u64>) {
        let answer = match limit {
            Some(limit) => self.frames.allocate_below(frames * FRAME, alignment, PhysAddr(limit)),
            None => self.frames.allocate(frames * FRAME, alignment),
        };
        let end = limit.unwrap_or(u64::MAX);
        let low = self.could_hold(0, frames, alignment, end.min(MIB), Truth::may_be_had);
        assert_eq!(answer.is_ok(), low || self.could_hold(MIB, frames, alignment, end, Truth::may_be_had));
        if let Ok(taken) = answer {
            assert!(taken.start().is_aligned(alignment.bytes()) && taken.bytes() == frames.max(1) * FRAME);
            assert!(taken.range().end().0 <= end);
            self.take(taken, FrameState::Host, Truth::may_be_had);
        }
    }

    fn allocate_for_guest(&mut self, frames: u64, alignment: PageSize, node: Option<u8>) {
        let set_aside = |frame: Truth| frame.state() == FrameState::FreeHuge && !frame.is_scrubbed_now;
        let answer = self.frames.allocate_for_guest(frames * FRAME, alignment, node);
        let could = self.could_hold(MIB, frames, alignment, u64::MAX, Truth::may_be_had);
        assert_eq!(answer.is_ok(), could || self.could_hold(MIB, frames, alignment, u64::MAX, set_aside));
        let Ok(GuestFrames { range, dirty }) = answer else { return };
        for frame in frames_of(range.range()) {
            let is_cleared = dirty.iter().any(|part| part.contains(PhysAddr(frame as u64 * FRAME)));
            assert!(is_cleared || self.model[frame].holds_zero, "no guest sees what another has left");
        }
        self.take(range, FrameState::Guest, |frame| frame.may_be_had() || set_aside(frame));
    }

    fn check(&self) {
        let free = self.model.iter().filter(|frame| matches!(frame.state(), FrameState::Free | FrameState::FreeHuge));
        assert_eq!(self.frames.free_bytes(), free.count() as u64 * FRAME, "no frame is lost");
        let retired = self.model.iter().filter(|frame| frame.is_retired).count() as u64;
        assert_eq!(self.frames.retired_bytes(), retired * FRAME);
        let mut previous_end = None;
        for extent in self.frames.extents() {
            let is_sorted = previous_end < Some(extent.start()) || self.model[frames_of(extent).start].is_set_aside;
            assert!(!extent.is_empty() && is_sorted, "sorted, apart, not empty");
            previous_end = Some(extent.end());
        }
        for (frame, truth) in self.model.iter().enumerate() {
            let address = PhysAddr(frame as u64 * FRAME);
            assert_eq!(self.frames.state_of(address), truth.state(), "frame {frame}");
            if let Some(records) = self.frames.records() {
                let recorded = records.state_of(address).unwrap_or(FrameState::Absent);
                assert_eq!(recorded, truth.state(), "record of frame {frame}");
            }
        }
    }
}

/// The records that a policy needs, and memory for them.
struct Room {
    zones: Vec<(PhysRange, u8, Vec<Record>, Vec<Block>)>,
}

impl Room {
    fn new() -> Self {
        let borders = [(0, 640 * KIB), (MIB, 5 * MIB), (5 * MIB + 2 * FRAME, BORDER), (BORDER, 12 * MIB)];
        let zones = borders.map(|(start, end)| range(start, end)).map(|range| {
            let Shape { records, blocks } = Shape::of(range);
            let node = u8::from(range.start().0 >= BORDER);
            let blank = (0..records).map(|_| Record::default()).collect();
            (range, node, blank, (0..blocks).map(|_| Block::default()).collect())
        });
        Self { zones: zones.into() }
    }

    fn records(&self, tails: Tails) -> Records<'_> {
        let zones = self.zones.iter().map(|(range, node, records, blocks)| Zone::new(*range, *node, records, blocks));
        Records::new(zones.collect::<Option<ArrayVec<_, _>>>().unwrap(), tails)
    }
}

fn write_all(records: &Records<'_>) {
    while records.write_some() == Progress::More {
        thread::yield_now();
    }
}

fn obeys(policy: Policy, requests: &[Request]) {
    let room = Room::new();
    let records = match policy {
        Policy::Extents => None,
        Policy::Eager(tails) | Policy::Deferred(tails) => Some(room.records(tails)),
    };
    let mut slots = vec![PhysRange::default(); LEDGER_SLOTS];
    let mut world = World::new(&mut slots);
    records.iter().for_each(|records| world.frames.keep_records(records));
    if let (Policy::Eager(_), Some(records)) = (policy, &records) {
        write_all(records);
    }
    thread::scope(|scope| {
        if let (Policy::Deferred(_), Some(records)) = (policy, &records) {
            (0..WRITERS).for_each(|_| _ = scope.spawn(|| write_all(records)));
        }
        for request in requests {
            world.obey(*request);
            world.check();
        }
    });
    world.check();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn a_frame_is_never_owned_twice_and_never_lost(requests in prop::collection::vec(request(), 1..40)) {
        POLICIES.iter().for_each(|policy| obeys(*policy, &requests));
    }
}

/// Every frame's record is written under both baselines, by one or by several; with whole huge frames their tails are
/// not.
#[test]
fn baselines_write_a_record_for_each_frame_and_omitted_tails_are_never_written() {
    let blocks = Room::new().records(Tails::Write).blocks();
    let all: u64 = Room::new().zones.iter().map(|(range, ..)| Shape::of(*range).record_bytes()).sum();
    for (tails, expected) in [(Tails::Write, all), (Tails::Omit, all - 2 * 511 * 64)] {
        for policy in [Policy::Eager(tails), Policy::Deferred(tails)] {
            let room = Room::new();
            let records = room.records(tails);
            let mut slots = vec![PhysRange::default(); LEDGER_SLOTS];
            let mut world = World::new(&mut slots);
            world.frames.keep_records(&records);
            let before = records.written_bytes();
            assert!(before < all / 2, "{policy:?}: only what is not free is written at first");
            thread::scope(|scope| (0..WRITERS).for_each(|_| _ = scope.spawn(|| write_all(&records))));
            assert_eq!(records.written_bytes(), expected + blocks, "{policy:?}");
        }
    }
}

/// Without records, what is written has nothing to do with how much memory there is.
#[test]
fn extents_write_as_much_for_12_tib_as_for_8_gib() {
    let written = |bytes: u64| {
        let mut slots = vec![PhysRange::default(); LEDGER_SLOTS];
        let mut frames = Frames::in_slots(&mut slots);
        frames.add_free(range(MIB, bytes)).unwrap();
        frames.reserve(range(2 * MIB, 4 * MIB)).unwrap();
        let guest = frames.allocate_for_guest(512 * MIB, PageSize::Mib2, None).unwrap();
        frames.free_from_guest(guest.range).unwrap();
        frames.written_bytes()
    };
    assert_eq!(written(8 << 30), written(12 << 40));
    assert!(written(12 << 40) < 64 * KIB);
}

/// A frame of 1 GiB that is kept whole has one record; one frame taken out of it gets the others theirs.
#[test]
fn a_whole_gib_has_one_record_until_it_is_split() {
    const GIB: u64 = 1 << 30;
    let zone = range(GIB - 2 * MIB, 2 * GIB + 2 * MIB);
    let Shape { records, blocks } = Shape::of(zone);
    let room: (Vec<_>, Vec<_>) =
        ((0..records).map(|_| Record::default()).collect(), (0..blocks).map(|_| Block::default()).collect());
    let zones = Zone::new(zone, 0, &room.0, &room.1).into_iter().collect();
    let records = Records::new(zones, Tails::Omit);
    let written = |change: &dyn Fn()| {
        let before = records.written_bytes();
        change();
        (records.written_bytes() - before) / 64
    };
    assert_eq!(written(&|| records.note(range(GIB, 2 * GIB), FrameState::FreeHuge)), 1);
    assert_eq!(written(&|| write_all(&records)), 2 * 512, "its neighbours'");
    assert_eq!(written(&|| records.note(range(GIB, 2 * GIB), FrameState::Guest)), 1);
    let taken = range(GIB + 6 * MIB, GIB + 6 * MIB + FRAME);
    assert_eq!(written(&|| records.note(taken, FrameState::Retired)), 512 + 512);
    let states =
        [GIB - FRAME, GIB, GIB + 6 * MIB - FRAME, GIB + 6 * MIB, GIB + 6 * MIB + FRAME, 2 * GIB - FRAME, 2 * GIB];
    let states = states.map(|at| records.state_of(PhysAddr(at)).unwrap());
    use FrameState::{Free, Guest, Retired};
    assert_eq!(states, [Free, Guest, Guest, Retired, Guest, Guest, Free]);
    assert_eq!(written(&|| records.note(range(GIB, 2 * GIB + FRAME), FrameState::Host)), 1 + 1);
    assert_eq!(records.state_of(PhysAddr(GIB + 6 * MIB)), Some(FrameState::Host));
}
