// SPDX-License-Identifier: MIT OR Apache-2.0
//! Queued invalidation (section 6.5.2). One command at a time, each with a wait descriptor behind it. Its status
//! word reports that the command is done: the queue is empty between commands.

use units::{PAGE_BYTES, PhysAddr};

use crate::domain::DomainId;
use crate::hardware::{Memory, Registers, wait_for};
use crate::intel::registers::{
    FAULT_STATUS, QUEUE_ADDRESS, QUEUE_ERRORS, QUEUE_HEAD, QUEUE_TAIL, QUEUED_INVALIDATION, set, status,
};
use crate::problem::Problem;

/// One page of descriptors (size 0 in IQA), and the status word behind them.
pub(super) const BYTES: u64 = 2 * PAGE_BYTES;
const DESCRIPTOR_BYTES: u64 = 16;
/// The index field of IQH and IQT: bits 4 to 18.
const INDEX: u64 = 0x7fff0;

/// The entries that the unit drops from its caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// All context entries.
    Contexts,
    /// The context entry of one function, which was in `domain`; domain 0 for an absent one.
    Context { requester: u16, domain: DomainId },
    /// All translations.
    Translations(Drain),
    /// A domain's translations.
    Domain(DomainId, Drain),
    /// Those of 2 to the power of `mask` pages at `address`, which is aligned to their size.
    Pages { domain: DomainId, address: u64, mask: u32, drain: Drain },
    /// All interrupt remapping entries.
    Interrupts,
    /// One of them.
    Interrupt { index: u16 },
}

/// The accesses that must have reached memory before an invalidation is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Drain {
    pub(super) writes: bool,
    pub(super) reads: bool,
}

impl Command {
    /// Returns its descriptor (sections 6.5.2.1 to 6.5.2.7).
    fn words(self) -> [u64; 2] {
        let domain = |id: DomainId| u64::from(id.0) << 16;
        match self {
            Self::Contexts => [0x1 | 1 << 4, 0],
            Self::Context { requester, domain: id } => [0x1 | 3 << 4 | domain(id) | u64::from(requester) << 32, 0],
            Self::Translations(drain) => [0x2 | 1 << 4 | drain.bits(), 0],
            Self::Domain(id, drain) => [0x2 | 2 << 4 | drain.bits() | domain(id), 0],
            Self::Pages { domain: id, address, mask, drain } => {
                [0x2 | 3 << 4 | drain.bits() | domain(id), (address & !0xfff) | u64::from(mask & 0x3f)]
            }
            Self::Interrupts => [0x4, 0],
            Self::Interrupt { index } => [0x4 | 1 << 4 | u64::from(index) << 32, 0],
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Contexts | Self::Context { .. } => "invalidating context entries",
            Self::Translations(_) | Self::Domain(..) | Self::Pages { .. } => "invalidating translations",
            Self::Interrupts | Self::Interrupt { .. } => "invalidating interrupt remapping entries",
        }
    }
}

impl Drain {
    fn bits(self) -> u64 {
        u64::from(self.writes) << 6 | u64::from(self.reads) << 7
    }
}

/// Writes `tag` to the status word at `status` (section 6.5.2.8).
fn wait_words(tag: u32, status: PhysAddr) -> [u64; 2] {
    [0x5 | 1 << 5 | u64::from(tag) << 32, status.0]
}

/// The queue in memory, which is always snooped (ECAP.C does not apply).
#[derive(Debug)]
pub(super) struct Queue {
    at: PhysAddr,
    /// The byte offset of the next descriptor.
    tail: u64,
    /// The last number that a wait wrote to the status word.
    tag: u32,
}

impl Queue {
    pub(super) fn new(memory: &mut impl Memory) -> Result<Self, Problem> {
        let at = memory.allocate_piece(BYTES).ok_or(Problem::OutOfMemory)?;
        Ok(Self { at, tail: 0, tag: 0 })
    }

    /// Adopts the queue at `at` as it was left, checked.
    pub(super) fn adopt(
        registers: &mut impl Registers,
        memory: &impl Memory,
        at: PhysAddr,
    ) -> Result<Self, &'static str> {
        let (head, tail) = (registers.read64(QUEUE_HEAD), registers.read64(QUEUE_TAIL));
        if registers.read64(QUEUE_ADDRESS) != at.0 || !at.is_aligned(BYTES) {
            return Err("the invalidation queue is elsewhere or of another size");
        }
        if head != tail || tail & !INDEX != 0 || tail >= PAGE_BYTES {
            return Err("the invalidation queue is not empty");
        }
        if registers.read32(FAULT_STATUS) & QUEUE_ERRORS != 0 {
            return Err("the invalidation queue has stopped with an error");
        }
        let mut queue = Self { at, tail, tag: 0 };
        queue.tag = memory.read_word(queue.status()) as u32;
        Ok(queue)
    }

    pub(super) fn at(&self) -> PhysAddr {
        self.at
    }

    /// Enables the queue, which is empty. None is enabled.
    pub(super) fn start(&mut self, registers: &mut impl Registers) -> Result<(), Problem> {
        self.tail = 0;
        registers.write32(FAULT_STATUS, QUEUE_ERRORS);
        registers.write64(QUEUE_TAIL, 0);
        registers.write64(QUEUE_ADDRESS, self.at.0);
        set(registers, QUEUED_INVALIDATION, true, "enabling queued invalidation")
    }

    /// Carries out a command to its end.
    ///
    /// # Errors
    /// [`Problem::NoAnswer`], or [`Problem::Refused`] with the fault status register if the unit finds an error; the
    /// queue is started again then.
    pub(super) fn carry_out(
        &mut self,
        registers: &mut impl Registers,
        memory: &mut impl Memory,
        command: Command,
    ) -> Result<(), Problem> {
        self.tag = self.tag.wrapping_add(1);
        let (tag, word) = (self.tag, self.status());
        wait_until_empty(registers)?;
        self.push(memory, command.words());
        self.push(memory, wait_words(tag, word));
        registers.write64(QUEUE_TAIL, self.tail);
        let mut errors = 0;
        wait_for(registers, command.name(), |registers| {
            errors = registers.read32(FAULT_STATUS) & QUEUE_ERRORS;
            errors != 0 || memory.read_word(word) as u32 == tag
        })?;
        if errors == 0 {
            return Ok(());
        }
        status(registers)?;
        stop(registers)?;
        self.start(registers)?;
        Err(Problem::Refused { what: command.name(), status: errors })
    }

    /// Gives the memory back; the queue is disabled.
    pub(super) fn free(self, memory: &mut impl Memory) {
        memory.free_piece(self.at, BYTES);
    }

    fn push(&mut self, memory: &mut impl Memory, words: [u64; 2]) {
        memory.write_word(PhysAddr(self.at.0 + self.tail), words[0]);
        memory.write_word(PhysAddr(self.at.0 + self.tail + 8), words[1]);
        self.tail = (self.tail + DESCRIPTOR_BYTES) % PAGE_BYTES;
    }

    fn status(&self) -> PhysAddr {
        PhysAddr(self.at.0 + PAGE_BYTES)
    }
}

/// Disables an enabled queue, once it is empty or has stopped with an error (section 6.5.2).
pub(super) fn stop(registers: &mut impl Registers) -> Result<(), Problem> {
    if status(registers)? & QUEUED_INVALIDATION == 0 {
        return Ok(());
    }
    wait_until_empty(registers)?;
    set(registers, QUEUED_INVALIDATION, false, "disabling queued invalidation")
}

fn wait_until_empty(registers: &mut impl Registers) -> Result<(), Problem> {
    wait_for(registers, "emptying the invalidation queue", |registers| {
        let is_stopped = registers.read32(FAULT_STATUS) & QUEUE_ERRORS != 0;
        is_stopped || (registers.read64(QUEUE_HEAD) ^ registers.read64(QUEUE_TAIL)) & INDEX == 0
    })
}
