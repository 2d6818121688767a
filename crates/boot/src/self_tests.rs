// SPDX-License-Identifier: MIT OR Apache-2.0
//! `selftest=`: ways in which the host fails on purpose, for tests.
//!
//! Only the test image takes this option: it is built with the hypervisor's feature `faults`, and has the fault points
//! at which these faults happen. The image that operators run has none, and refuses the option
//! ([`crate::Complaint::NoFaultPoints`]).

mod kinds;
mod values;

use arrayvec::ArrayVec;

use crate::options::OptionSpec;

pub use kinds::{EndFault, EndStep, MadtDamage, SelfTest, StopPhase, UpdateFault, UpdateStep};

/// Self-tests that one command line can ask for.
pub const MAXIMUM_SELF_TESTS: usize = 8;

/// The option, beside [`crate::OPTIONS`].
pub const SELF_TEST_OPTION: OptionSpec = OptionSpec {
    name: "selftest",
    accepted: "none, or up to 8 of exception, pagefault, stack-overflow, write-to-code, panic, log, \
               panic-in-interrupt, nmi, unexpected-interrupt, panic-in-log, panic-in-heap, panic-in-report, \
               panic-on-two, panic-beside-masked, panic-beside-unresponsive, panic-when-asked, unresponsive-at-parking, \
               stuck-in-mailbox, spoil-staged, pci-storm, refused-register, dma, never-ready, \
               madt:missing/truncated/duplicate/absurd, \
               stop:<CPU>:first-sign/initialisation/tsc-sync/online, \
               update:panic/exception/hang/stack-overflow/damage/freeze/wrong:begin/prepare/arrive/restore/meet, \
               update:wait:there-start/-gdt/-task/-idt/-tables/-gs/-enter, \
               update:wait:back-start/-gs/-tables/-gdt/-idt/-task, update:wait:each, update:wait:interrupt, \
               update:breaks-line, \
               end:panic/exception/hang:stop/report/epitaph/flush/last-words/notify/rest, joined by commas",
    default: "none",
    what: "crash on purpose once the host is up; send an NMI or an interrupt that is no one's; try the log; lose the \
           last CPU at a restart, or damage its image; probe PCI functions for ever; let a device write to \
           memory, or functions never come back from resets; write to a register that refuses it; damage the table \
           of CPUs; stop one while it comes up; let a step of the host's end fail; \
           or let the image fail by which an update would replace this one, or break its control line, or CPUs wait on their way to it and back, \
           or there for a device's interrupt",
    examples: &[
        "none",
        "exception",
        "pagefault,panic",
        "stack-overflow",
        "write-to-code",
        "unresponsive-at-parking",
        "stuck-in-mailbox",
        "spoil-staged",
        "pci-storm",
        "refused-register",
        "dma",
        "never-ready",
        "log,nmi",
        "nmi,panic-when-asked",
        "madt:missing",
        "stop:1:tsc-sync,stop:2:online",
        "update:panic:prepare",
        "update:damage:restore,update:hang:meet",
        "update:panic:restore,update:wait:back-idt",
        "update:hang:arrive,update:wait:each",
        "update:wait:interrupt",
        "update:breaks-line",
        "update:freeze:begin,update:freeze:arrive,update:wrong:prepare",
    ],
    apply: |_, value| SelfTests::read(value).map(drop),
};

/// The self-tests that a command line asks for, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelfTests(ArrayVec<SelfTest, MAXIMUM_SELF_TESTS>);

impl SelfTests {
    /// Reads the option's value; `None` refuses it.
    pub(crate) fn read(value: &str) -> Option<Self> {
        let mut tests = ArrayVec::new();
        if value != "none" {
            for word in value.split(',') {
                tests.try_push(values::self_test(word)?).ok()?;
            }
        }
        Some(Self(tests))
    }

    /// Returns all of them.
    pub fn all(&self) -> &[SelfTest] {
        &self.0
    }

    /// Returns true if the operator asks for this one.
    pub fn contains(&self, test: SelfTest) -> bool {
        self.0.contains(&test)
    }

    /// Returns how the firmware's table of CPUs is damaged.
    pub fn madt_damage(&self) -> Option<MadtDamage> {
        self.find(|test| if let SelfTest::Madt(damage) = test { Some(damage) } else { None })
    }

    /// Returns where the CPU with this number stops for good while it comes up.
    pub fn stop(&self, cpu: u32) -> Option<StopPhase> {
        self.find(|test| match test {
            SelfTest::Stop { cpu: which, phase } if which == cpu => Some(phase),
            _ => None,
        })
    }

    /// Returns how an image on trial fails at this step.
    pub fn update(&self, step: UpdateStep) -> Option<UpdateFault> {
        self.find(|test| match test {
            SelfTest::Update { fault, step: at } if at == step => Some(fault),
            _ => None,
        })
    }

    /// Returns the fault point at which CPUs wait in the update with this number, counted from 0, on their way to the
    /// new image and back. Points count from 1.
    pub fn update_wait(&self, update: usize) -> Option<usize> {
        let point = self.find(|test| if let SelfTest::UpdateWait { point } = test { Some(point) } else { None })?;
        Some(point.map_or(update % SelfTest::UPDATE_POINTS.len() + 1, usize::from))
    }

    /// Returns how this step of the host's end fails.
    pub fn end(&self, step: EndStep) -> Option<EndFault> {
        self.find(|test| match test {
            SelfTest::End { fault, step: at } if at == step => Some(fault),
            _ => None,
        })
    }

    fn find<T>(&self, pick: impl FnMut(SelfTest) -> Option<T>) -> Option<T> {
        self.0.iter().copied().find_map(pick)
    }
}
