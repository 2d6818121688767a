// SPDX-License-Identifier: MIT OR Apache-2.0
//! Faults of the services below guests, in the test image only, and which self-tests are asked for.

use boot::options::{Complaints, Options};
use boot::self_tests::{MadtDamage, SelfTest, SelfTests, StopPhase};
use bringup::state::Phase;
use firmware::Tables;
use firmware::damage::{Damage, Damaged};
use spin::Once;

use crate::arch::boot::BootMemory;
use crate::kernel::inherited;

static SELF_TESTS: Once<SelfTests> = Once::new();

/// Parses the command line, and notes its self-tests.
pub fn parse_options(command_line: &str) -> (Options, Complaints<'_>) {
    let (options, self_tests, complaints) = Options::parse_with_self_tests(command_line);
    SELF_TESTS.call_once(|| self_tests);
    (options, complaints)
}

/// Returns the self-tests; `None` before the command line is parsed.
pub fn self_tests() -> Option<&'static SelfTests> {
    SELF_TESTS.get()
}

/// Returns true if this self-test is asked for.
pub fn is_asked_for(test: SelfTest) -> bool {
    self_tests().is_some_and(|tests| tests.contains(test))
}

/// Returns true if this self-test is asked for, and this image is the host's image number `generation`.
pub fn is_asked_for_in(generation: u64, test: SelfTest) -> bool {
    inherited::generation() == generation && is_asked_for(test)
}

/// Reads the firmware's tables, perhaps with a damaged table of CPUs.
pub fn discover(rsdp: Option<u64>, tables: &mut Tables) -> Result<(), firmware::Error> {
    let damage = match self_tests().and_then(SelfTests::madt_damage) {
        None => return firmware::discover(&BootMemory, rsdp, tables),
        Some(MadtDamage::Missing) => Damage::Missing,
        Some(MadtDamage::Truncated) => Damage::Truncated,
        Some(MadtDamage::Duplicate) => Damage::Duplicate,
        Some(MadtDamage::Absurd) => Damage::Absurd,
    };
    firmware::discover(&Damaged::new(&BootMemory, damage), rsdp, tables)
}

/// Returns where this CPU stops for good while it comes up.
pub fn stop_at(index: u32) -> Option<Phase> {
    Some(match self_tests()?.stop(index)? {
        StopPhase::FirstSign => Phase::FirstSign,
        StopPhase::Initialisation => Phase::Initialisation,
        StopPhase::TscSync => Phase::TscSync,
        StopPhase::Online => Phase::Online,
    })
}

/// Returns the number of a parked CPU that is not woken after the first restart: the last of `mailboxes`.
pub fn stuck_in_mailbox<T>(mailboxes: &[Option<T>]) -> Option<u32> {
    let last = mailboxes.iter().rposition(Option::is_some)? as u32;
    is_asked_for_in(2, SelfTest::StuckInMailbox).then_some(last)
}
