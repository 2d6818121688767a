// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host with an image to stage: it notes each step, counts what was not given back, and has one fault.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use handover::MAX_RECORD_BYTES;
use update::stage::{self, Parts, Placer, Policy, TooLarge};

pub const UNCHECKED: Policy = Policy { is_checked: false, is_locked: false };
pub const CHECKED: Policy = Policy { is_checked: true, is_locked: false };
pub const EARLY: Policy = Policy { is_checked: true, is_locked: true };
pub const POLICIES: [Policy; 3] = [UNCHECKED, CHECKED, EARLY];

const GROWTH_BYTES: usize = 96;
pub const LARGEST_RECORD: usize = MAX_RECORD_BYTES - GROWTH_BYTES;
/// An image of three slices.
const SLICES: usize = 3;
pub const SEALED_BYTES: u64 = SLICES as u64;
const VERSION: u32 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Describe,
    Admit,
    Seal,
    Allocate,
    Copy,
    Lock,
    LeaveOpen,
    Hash,
    CheckGuests,
    Judge,
    TrustUnchecked,
    Version,
    Record,
    StagingMemory,
    Files,
    Pack,
    Assemble,
    SwitchPages,
    Write,
    /// No step of the host: the hand-over block is too large.
    Measured,
    Map,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// A step fails: there is no memory, the other CPU loads a guest or does not flush its TLB, …
    Fails(Step),
    /// The other CPU writes to the image's memory before this step of all.
    StrayWrite {
        before: usize,
    },
    /// The hand-over block has this length.
    RecordOf(usize),
}

#[derive(Clone, Copy, Debug)]
pub struct Config {
    pub policy: Policy,
    pub is_update: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Staged {
    pub version: u32,
    pub packed_for: u32,
    pub has_update_goods: bool,
    pub is_as_sealed: bool,
}

pub struct Outcome {
    pub result: Result<Staged, Step>,
    pub steps: Vec<Step>,
    /// Things that still were there when only the result was.
    pub kept: usize,
    pub has_file: bool,
    pub sealed_bytes: Option<u64>,
}

impl From<TooLarge> for Step {
    fn from(_: TooLarge) -> Self {
        Self::Measured
    }
}

#[derive(Clone)]
struct Host(Rc<State>);

struct State {
    fault: Fault,
    steps: RefCell<Vec<Step>>,
    things: Cell<usize>,
    /// The image's memory, if it has any: the content of each slice, and whether it is locked.
    image: Cell<Option<([u64; SLICES], bool)>>,
}

/// Something that is given back when it is dropped.
struct Thing(Host);

impl Drop for Thing {
    fn drop(&mut self) {
        self.0.0.things.set(self.0.0.things.get() - 1);
    }
}

/// The content of memory before it is written to and of the file, and the value that the other CPU writes.
const OLD: u64 = 0;
const SEALED: u64 = 1;
const STRAY: u64 = 2;

impl Host {
    fn new(fault: Fault) -> Self {
        Self(Rc::new(State { fault, steps: RefCell::default(), things: Cell::default(), image: Cell::default() }))
    }

    fn take(&self, step: Step) -> Result<(), Step> {
        let State { fault, steps, image, .. } = &*self.0;
        if *fault == (Fault::StrayWrite { before: steps.borrow().len() })
            && let Some((_, false)) = image.get()
        {
            image.set(Some(([STRAY; SLICES], false)));
        }
        steps.borrow_mut().push(step);
        if *fault == Fault::Fails(step) { Err(step) } else { Ok(()) }
    }

    fn make(&self, step: Step) -> Result<Thing, Step> {
        self.take(step)?;
        self.0.things.set(self.0.things.get() + 1);
        Ok(Thing(self.clone()))
    }

    fn content(&self) -> [u64; SLICES] {
        self.0.image.get().expect("it has memory").0
    }
}

impl Placer for Host {
    type Image = ();
    type Memory = Thing;
    type Slot = Thing;
    type Error = Step;

    fn describe(&mut self) -> Result<(), Step> {
        self.take(Step::Describe)
    }

    fn admit(&mut self, (): &()) -> Result<(), Step> {
        self.take(Step::Admit)
    }

    fn sealed_bytes(&mut self) -> Result<u64, Step> {
        self.take(Step::Seal).map(|()| SEALED_BYTES)
    }

    fn allocate(&mut self, (): &()) -> Result<Thing, Step> {
        let memory = self.make(Step::Allocate)?;
        self.0.image.set(Some(([OLD; SLICES], false)));
        Ok(memory)
    }

    fn copy(&mut self, (): &(), _: &mut Thing, from: usize) -> Option<usize> {
        self.take(Step::Copy).expect("it cannot fail");
        let mut content = self.content();
        content[from] = SEALED;
        self.0.image.set(Some((content, false)));
        (from + 1 < SLICES).then_some(from + 1)
    }

    fn lock(&mut self, memory: Thing) -> Result<Thing, Step> {
        self.take(Step::Lock)?;
        self.0.image.set(Some((self.content(), true)));
        Ok(memory)
    }

    fn leave_open(&mut self, memory: Thing) -> Thing {
        self.take(Step::LeaveOpen).expect("it cannot fail");
        memory
    }
}

/// The image in its slot, and what each slice of it held.
struct Image {
    _slot: Thing,
    hashed: Vec<u64>,
}

struct Stager {
    host: Host,
    packed_for: u32,
    file: Thing,
}

struct HandOver {
    host: Host,
    parts: Parts<Stager>,
    packed_for: u32,
    file: Thing,
}

impl stage::Stager for Stager {
    type Placed = Image;
    type Trusted = Image;
    type Memory = Thing;
    type Files = Thing;
    type State = Thing;
    type Source = Thing;
    type HandOver = HandOver;
    type Error = Step;

    fn check_guests(&mut self) -> Result<(), Step> {
        self.host.take(Step::CheckGuests)
    }

    fn judge(&mut self, placed: Image) -> Result<Image, Step> {
        self.host.take(Step::Judge)?;
        if placed.hashed == [SEALED; SLICES] { Ok(placed) } else { Err(Step::Judge) }
    }

    fn trust_unchecked(&mut self, placed: Image) -> Image {
        self.host.take(Step::TrustUnchecked).expect("it cannot fail");
        placed
    }

    fn version(&mut self, _: &Image) -> Result<u32, Step> {
        self.host.take(Step::Version).map(|()| VERSION)
    }

    fn allocate_record(&mut self) -> Result<Thing, Step> {
        self.host.make(Step::Record)
    }

    fn allocate_staging_memory(&mut self) -> Result<Thing, Step> {
        self.host.make(Step::StagingMemory)
    }

    fn copied_files(&mut self) -> Result<Thing, Step> {
        self.host.make(Step::Files)
    }

    fn pack(&mut self, version: u32) -> Result<Thing, Step> {
        self.packed_for = version;
        self.host.make(Step::Pack)
    }

    fn assemble(self, parts: Parts<Self>) -> HandOver {
        self.host.take(Step::Assemble).expect("it cannot fail");
        HandOver { host: self.host, parts, packed_for: self.packed_for, file: self.file }
    }

    fn into_source(self) -> Thing {
        self.file
    }
}

impl stage::HandOver for HandOver {
    type SwitchPages = Thing;
    type Source = Thing;
    type Error = Step;
    const GROWTH_BYTES: usize = GROWTH_BYTES;

    fn build_switch_pages(&mut self) -> Result<Thing, Step> {
        self.host.make(Step::SwitchPages)
    }

    fn write_record(&mut self, _: &Thing) -> Result<usize, Step> {
        self.host.take(Step::Write)?;
        Ok(match self.host.0.fault {
            Fault::RecordOf(bytes) => bytes,
            _ => 4096,
        })
    }

    fn map(&mut self, _: &Thing) -> Result<(), Step> {
        self.host.take(Step::Map)
    }

    fn into_source(self) -> Thing {
        self.file
    }
}

/// Stages an image.
pub fn stage(config: Config, fault: Fault) -> Outcome {
    let mut host = Host::new(fault);
    let mut sealed_bytes = None;
    // The file is no step.
    host.0.things.set(1);
    let file = Thing(host.clone());
    let (result, file) = match stage::place(&mut host, config.policy) {
        Ok(mut described) => {
            sealed_bytes = Some(described.sealed_bytes);
            // One slice for itself; the other ones at the end.
            assert!(!described.placing.step(&mut host, &()));
            match described.placing.finish(&mut host, &(), config.policy) {
                Ok(slot) => finish(&host, config, hashed(&host, config.policy, slot, described.sealed_bytes), file),
                Err(error) => (Err(error), Some(file)),
            }
        }
        Err(error) => (Err(error), Some(file)),
    };
    let has_file = result.is_ok() || file.is_some();
    drop(file);
    Outcome { result, steps: host.0.steps.take(), kept: host.0.things.get(), has_file, sealed_bytes }
}

fn hashed(host: &Host, policy: Policy, slot: Thing, sealed_bytes: u64) -> Image {
    let mut image = Image { _slot: slot, hashed: Vec::new() };
    for _ in 0..10 * SEALED_BYTES {
        let slice = || {
            host.take(Step::Hash).expect("it cannot fail");
            image.hashed.push(host.content()[image.hashed.len()]);
            image.hashed.len() as u64 == sealed_bytes
        };
        if stage::hash(policy, slice) {
            return image;
        }
    }
    panic!("it is never hashed");
}

fn finish(host: &Host, config: Config, image: Image, file: Thing) -> (Result<Staged, Step>, Option<Thing>) {
    let stager = Stager { host: host.clone(), packed_for: 0, file };
    match stage::finish(stager, image, config.policy, config.is_update) {
        Ok((hand_over, _switch_pages)) => {
            let parts = &hand_over.parts;
            assert_eq!(parts.staging_memory.is_some(), parts.files.is_some());
            let staged = Staged {
                version: parts.version,
                packed_for: hand_over.packed_for,
                has_update_goods: parts.files.is_some(),
                is_as_sealed: host.content() == [SEALED; SLICES],
            };
            (Ok(staged), None)
        }
        Err((error, file)) => (Err(error), Some(file)),
    }
}
