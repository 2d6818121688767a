// SPDX-License-Identifier: MIT OR Apache-2.0
//! A CPU on its way to the new image and back, while an NMI or a machine check may come between any two instructions.
//!
//! The steps are read from the assembly itself ([`code`]), the stacks from a page as the old image prepares it; a model
//! of the CPU ([`cpu`]) tries every place at which each may come, as often as it may. So the test fails if the order of
//! the assembly, or what the page names, is not safe. That it can fail is shown by putting each defect of release 0.1.0
//! back.

mod code;
mod cpu;

use code::{Code, FindsPage, Image, Step};
use cpu::{Lost, Why, explore};
use update::descriptors::OwnStacks;

/// The old image's stacks: anything but zero, and nothing in a page.
const OWN: OwnStacks = OwnStacks { nmi: 0xffff_8000_0000_1000, machine_check: 0xffff_8000_0000_2000 };

fn todays() -> Code {
    Code::read()
}

fn lost(code: &Code, own: Option<OwnStacks>) -> Lost {
    explore(code, own).expect_err("the defect does not show")
}

#[test]
fn an_nmi_or_a_machine_check_at_any_instruction_ends_nothing() {
    let states = explore(&todays(), Some(OWN)).unwrap_or_else(|lost| panic!("the host is lost: {lost:?}"));
    assert!(states > 20, "only {states} states");
}

#[test]
fn the_assembly_has_the_steps_that_the_model_knows() {
    let code = todays();
    let there = [Step::Gdt(Image::Page), Step::Task(Image::Page), Step::Idt(Image::Page), Step::Tables(Image::New)];
    assert_eq!(code.there[..4], there);
    assert_eq!((code.there.len(), code.back.len()), (5, 5), "{code:?}");
    assert_eq!(code.finds_page, FindsPage::ByStack);
}

/// Defect: the page named no stacks for the old image's gates.
#[test]
fn without_the_old_images_stacks_the_host_is_lost() {
    assert_eq!(lost(&todays(), None).why, Why::NoStack);
}

/// Defect: the old image's IDT came before its GS.
#[test]
fn with_gs_restored_last_the_host_is_lost() {
    let code = todays().with_moved(Step::Gs(Image::Old), Step::Idt(Image::Old));
    assert_eq!(lost(&code, Some(OWN)).why, Why::WrongGs);
}

/// Defect: the handler found the page by the GDT, which is the old image's before its IDT is.
#[test]
fn a_handler_that_finds_its_page_by_the_gdt_loses_the_host() {
    let code = Code { finds_page: FindsPage::ByGdt, ..todays() };
    assert_eq!(lost(&code, Some(OWN)).why, Why::WrongPage);
}

/// No defect of any release: what else the order is for.
#[test]
fn with_tables_or_tss_in_another_order_the_host_is_lost() {
    let late_tables = todays().with_moved(Step::Tables(Image::Old), Step::Idt(Image::Old));
    assert_eq!(lost(&late_tables, Some(OWN)).why, Why::NoStack);
    let early_task = todays().with_moved(Step::Idt(Image::Old), Step::Task(Image::Old));
    assert_eq!(lost(&early_task, Some(OWN)).why, Why::NoStack);
}
