// SPDX-License-Identifier: MIT OR Apache-2.0
//! The switch page's code as far as the model needs it: which image's tables a CPU loads, in which order. Read from the
//! source, so that a change there is a change here.

use std::fs;
use std::path::Path;

/// The owner of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Image {
    Old,
    /// The CPU's page between the images.
    Page,
    New,
}

/// An instruction that changes what an interrupt finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    Gdt(Image),
    Task(Image),
    Idt(Image),
    Tables(Image),
    Gs(Image),
}

/// The way in which an NMI's handler under the page's IDT finds the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindsPage {
    ByStack,
    ByGdt,
}

/// The code.
#[derive(Clone, Debug)]
pub struct Code {
    /// To the new image, which then executes IRETQ.
    pub there: Vec<Step>,
    /// To the old one, likewise. An NMI there begins this again.
    pub back: Vec<Step>,
    pub finds_page: FindsPage,
}

impl Code {
    /// Reads the hypervisor's source. Panics where that is not as it is expected.
    pub fn read() -> Self {
        let text = source();
        let handler = between(&text, "_trial_nmi:", "_pass_over:");
        let finds_page = match (handler.contains("and rbx, -4096"), handler.contains("sgdt")) {
            (true, false) => FindsPage::ByStack,
            (false, true) => FindsPage::ByGdt,
            _ => panic!("it is not clear how the handler of an NMI finds the page"),
        };
        Self {
            there: steps(between(&text, "_resume:", "iretq")),
            back: steps(between(&text, "_back:", "iretq")),
            finds_page,
        }
    }

    /// Returns the same, but on the way back this step comes right after that one.
    pub fn with_moved(mut self, step: Step, after: Step) -> Self {
        self.back.retain(|other| *other != step);
        let at = self.back.iter().position(|other| *other == after).expect("the step is on the way back");
        self.back.insert(at + 1, step);
        self
    }
}

/// Returns the one assembly file with both ways.
fn source() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hypervisor/src/arch");
    let files = fs::read_dir(folder).expect("the hypervisor's folder").map(|entry| entry.expect("an entry").path());
    let texts = files.filter(|path| path.extension().is_some_and(|kind| kind == "S"));
    let code =
        |text: String| text.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n");
    let mut texts = texts.map(|path| code(fs::read_to_string(path).expect("text")));
    texts.find(|text| text.contains("_resume:") && text.contains("_back:")).expect("the switch page's code")
}

fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let rest = text.split_once(from).unwrap_or_else(|| panic!("no {from} in the code")).1;
    rest.split_once(to).unwrap_or_else(|| panic!("no {to} behind {from}")).0
}

fn steps(code: &str) -> Vec<Step> {
    // The image whose values were loaded last for CR3, for GS, and for TR.
    let (mut root, mut gs, mut task) = (None, None, None);
    let mut steps = Vec::new();
    for line in code.lines().map(str::trim) {
        let image = if line.contains("{old") { Image::Old } else { Image::New };
        let is_load = line.starts_with("mov e") || line.starts_with("mov r");
        match line {
            _ if is_load && line.contains("{cr3}") => root = Some(image),
            _ if is_load && line.contains("{gs_base}") => gs = Some(image),
            "mov eax, 24" => task = Some(Image::Page),
            _ if is_load && line.contains("{old_task}") => task = Some(Image::Old),
            "mov cr3, rax" => steps.push(Step::Tables(root.expect("a root"))),
            "wrmsr" => steps.push(Step::Gs(gs.expect("a GS base"))),
            "ltr ax" => steps.push(Step::Task(task.expect("a selector"))),
            "lgdt [rbx + {gdtr}]" => steps.push(Step::Gdt(Image::Page)),
            "lgdt [rbx + {old_gdtr}]" => steps.push(Step::Gdt(Image::Old)),
            "lidt [rbx + {idtr}]" => steps.push(Step::Idt(Image::Page)),
            "lidt [rbx + {old_idtr}]" => steps.push(Step::Idt(Image::Old)),
            _ => {
                let changes = ["lgdt", "lidt", "ltr", "mov cr3", "wrmsr", "swapgs"];
                assert!(!changes.iter().any(|word| line.starts_with(word)), "what does '{line}' load?");
            }
        }
    }
    steps
}
