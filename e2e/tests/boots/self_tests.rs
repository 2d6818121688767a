// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's own end, on purpose: what it prints is enough to know what happened and where.

use anyhow::{Context as _, Result, ensure};
use baton::symbols::Symbols;
use e2e::place::built;
use e2e::recipe::Recipe;
use lab::Ending;

use super::Rule;

pub const RULES: &[Rule] = &[
    ("an_undefined_instruction_is_reported", an_undefined_instruction_is_reported),
    ("a_page_fault_is_reported_with_its_address", a_page_fault_is_reported_with_its_address),
    ("a_stack_overflow_hits_its_guard_page", a_stack_overflow_hits_its_guard_page),
    ("code_cannot_be_written", code_cannot_be_written),
    ("a_panic_is_reported_with_its_place", a_panic_is_reported_with_its_place),
];

/// Ends the host by this self-test; its lines with functions and lines.
fn report(self_test: &str) -> Result<Vec<String>> {
    let mut host = Recipe::new().options(&format!("selftest={self_test}")).start_with(None)?;
    let ending = host.ending()?;
    ensure!(ending == Ending::Panicked, "{ending}:\n{}", host.seen);
    let symbols = Symbols::load(&built("baton.debug.elf")?)?;
    Ok(host.seen.host.iter().map(|line| symbols.annotate(line)).collect())
}

/// A report of an exception: which, registers, code, a way there through these functions.
fn exception(self_test: &str, parts: &[&str]) -> Result<()> {
    let lines = report(self_test)?;
    let has = |part: &str| lines.iter().any(|line| line.contains(part));
    for part in ["exception ", "rip ffffffff8", "rsp ", "rax ", "r15 ", "code at rip: ["].iter().chain(parts) {
        ensure!(has(part), "there is no {part:?} in {lines:#?}");
    }
    Ok(())
}

fn an_undefined_instruction_is_reported() -> Result<()> {
    // The bytes of UD2.
    let parts = ["#UD invalid opcode on CPU 0", "code at rip: [0f, 0b", " #0 0x", " run_self_tests at "];
    exception("exception", &parts)
}

fn a_page_fault_is_reported_with_its_address() -> Result<()> {
    exception(
        "pagefault",
        &["#PF page fault", "error code 0x0", "fault address 0x00000000dead0000", " run_self_tests at "],
    )
}

fn a_stack_overflow_hits_its_guard_page() -> Result<()> {
    exception("stack-overflow", &["guard page of a stack", " deepen at "])
}

fn code_cannot_be_written() -> Result<()> {
    // Error code: a write (2) to a page that is there (1).
    exception("write-to-code", &["#PF page fault", "error code 0x3", " run_self_tests at "])
}

fn a_panic_is_reported_with_its_place() -> Result<()> {
    let lines = report("panic")?;
    let at = lines.iter().position(|line| line.contains("panic on CPU 0: self-test")).context("no panic")?;
    ensure!(lines[at + 1].contains("at hypervisor/src/lifecycle/start.rs:"), "{lines:#?}");
    ensure!(lines[at + 2..].iter().any(|line| line.contains(" run_self_tests at ")), "{lines:#?}");
    Ok(())
}
