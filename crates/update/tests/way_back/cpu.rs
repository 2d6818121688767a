// SPDX-License-Identifier: MIT OR Apache-2.0
//! A CPU between two images, as an interrupt that cannot be masked finds it: the image of the loaded GDT, TSS, IDT,
//! tables and GS, and the place in the code.

use std::collections::HashSet;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use update::descriptors::{OWN_CHECK_SLOT, OWN_NMI_SLOT, OwnStacks, Placement};
use update::trial::{CHECK_SLOT, NMI_SLOT, PAGE_BYTES, TrialPage};

use crate::code::{Code, FindsPage, Image, Step};

/// The page's address in both images' tables.
const PAGE: u64 = 0xffff_e000_0004_0000;

/// The reason why the host cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The gate's stack is not in the loaded TSS, or not in the loaded tables.
    NoStack,
    /// The old image's handler has not its GS.
    WrongGs,
    /// The page's handler takes something else for the page.
    WrongPage,
    /// The CPU is back with something of another image, or with NMIs blocked.
    NotRestored,
}

/// The end of the host.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "shown by the test that fails")]
pub struct Lost {
    pub why: Why,
    /// Then, and by this.
    cpu: Cpu,
    event: Option<Event>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Nmi,
    MachineCheck,
}

/// Before which instruction it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum At {
    There(usize),
    /// In the new image, or where that is left and its registers are saved.
    New,
    Back(usize),
    /// It runs the old image again.
    Home,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Cpu {
    at: At,
    gdt: Image,
    task: Image,
    idt: Image,
    tables: Image,
    gs: Image,
    are_nmis_blocked: bool,
}

/// Tries everything. Returns the number of states.
pub fn explore(code: &Code, own: Option<OwnStacks>) -> Result<usize, Lost> {
    let page = page(own);
    let old = Image::Old;
    let begin = Cpu { at: At::There(0), gdt: old, task: old, idt: old, tables: old, gs: old, are_nmis_blocked: false };
    let (mut seen, mut open) = (HashSet::from([begin]), vec![begin]);
    while let Some(cpu) = open.pop() {
        let events = [Some(Event::Nmi).filter(|_| !cpu.are_nmis_blocked), Some(Event::MachineCheck)];
        let mut next = vec![cpu.step(code)];
        for event in events.into_iter().flatten() {
            let interrupted = cpu.take(event, code, &page);
            next.push(interrupted.map_err(|why| Lost { why, cpu, event: Some(event) })?);
        }
        for cpu in next {
            cpu.check_home().map_err(|why| Lost { why, cpu, event: None })?;
            if seen.insert(cpu) {
                open.push(cpu);
            }
        }
    }
    assert!(seen.iter().any(|cpu| cpu.at == At::Home), "it never comes back");
    Ok(seen.len())
}

impl Cpu {
    /// Executes the next instruction.
    fn step(mut self, code: &Code) -> Self {
        let (steps, at) = match self.at {
            At::There(at) => (&code.there, at),
            At::Back(at) => (&code.back, at),
            At::New => return Self { at: At::Back(0), ..self },
            At::Home => return self,
        };
        let Some(step) = steps.get(at) else {
            // IRETQ.
            self.are_nmis_blocked = false;
            self.at = if matches!(self.at, At::There(_)) { At::New } else { At::Home };
            return self;
        };
        match *step {
            Step::Gdt(image) => self.gdt = image,
            Step::Task(image) => self.task = image,
            Step::Idt(image) => self.idt = image,
            Step::Tables(image) => self.tables = image,
            Step::Gs(image) => self.gs = image,
        }
        self.at = if matches!(self.at, At::There(_)) { At::There(at + 1) } else { At::Back(at + 1) };
        self
    }

    /// Runs the handler of the loaded IDT, from its stack to where it leaves the CPU.
    fn take(mut self, event: Event, code: &Code, page: &TrialPage) -> Result<Self, Why> {
        let is_nmi = event == Event::Nmi;
        let slot = match (self.idt, is_nmi) {
            (Image::Page, true) => NMI_SLOT,
            (Image::Page, false) => CHECK_SLOT,
            (Image::Old | Image::New, true) => OWN_NMI_SLOT,
            (Image::Old | Image::New, false) => OWN_CHECK_SLOT,
        };
        let stack = self.stack(slot, page).ok_or(Why::NoStack)?;
        if self.idt == Image::Old {
            // It serves the interrupt, and returns by IRETQ.
            let has_gs = self.gs == Image::Old;
            return if has_gs { Ok(Self { are_nmis_blocked: false, ..self }) } else { Err(Why::WrongGs) };
        }
        let finds_page = match code.finds_page {
            FindsPage::ByStack => (stack - 1) & !(PAGE_BYTES as u64 - 1) == PAGE,
            FindsPage::ByGdt => self.gdt == Image::Page,
        };
        if !finds_page {
            return Err(Why::WrongPage);
        }
        self.are_nmis_blocked |= is_nmi;
        // The stack that it has come on is noted, and the way back begins, or begins again. No IRET: NMIs stay blocked.
        self.at = At::Back(0);
        Ok(self)
    }

    /// Returns the stack of a slot of the loaded TSS, if the loaded tables show it.
    fn stack(&self, slot: usize, page: &TrialPage) -> Option<u64> {
        match self.task {
            Image::Page => {
                let top = named(page, slot);
                let is_shown = in_page(top) || self.tables == Image::Old;
                (top != 0 && is_shown).then_some(top)
            }
            // Its own slots alone are what its own gates mean, and its own tables show them.
            image => {
                let is_own = [OWN_NMI_SLOT, OWN_CHECK_SLOT].contains(&slot) && self.idt == image;
                (is_own && self.tables == image).then_some(1)
            }
        }
    }

    fn check_home(&self) -> Result<(), Why> {
        let all = [self.gdt, self.task, self.idt, self.tables, self.gs];
        let is_restored = all.iter().all(|image| *image == Image::Old) && !self.are_nmis_blocked;
        if self.at != At::Home || is_restored { Ok(()) } else { Err(Why::NotRestored) }
    }
}

fn in_page(top: u64) -> bool {
    (PAGE + 1..=PAGE + PAGE_BYTES as u64).contains(&top)
}

/// Returns the stack in a slot of the page's TSS: unaligned quadwords from offset 36 on (AMD APM vol. 2, figure 12-8).
fn named(page: &TrialPage, slot: usize) -> u64 {
    let bytes: Vec<u8> = page.tss.iter().flat_map(|word: &AtomicU64| word.load(Relaxed).to_le_bytes()).collect();
    let at = 36 + (slot - 1) * 8;
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn page(own: Option<OwnStacks>) -> Box<TrialPage> {
    let page = Box::new(TrialPage::zeroed());
    page.prepare(&Placement { page: PAGE, idt: PAGE - PAGE_BYTES as u64, gdt: [0, 1, 2] }, own);
    page
}
