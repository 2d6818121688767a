// SPDX-License-Identifier: MIT OR Apache-2.0
//! The source of SVM's world switch against what each [`Variant`] promises. No emulator has the buffers, the predictors
//! and the divider that its measures clear, so that no boot notices one that is missing.

use std::format;
use std::string::{String, ToString as _};
use std::vec::Vec;

use crate::switch::Exit;

const SOURCE: &str = include_str!("../../../../hypervisor/src/arch/svm/switch.S");

/// Exit, exchange of SPEC_CTRL, count of the guest's time: in the order of [`Variant::index`].
///
/// [`Variant::index`]: crate::switch::Variant::index
const EXITS: [Exit; 4] = [Exit::Plain, Exit::Cleared, Exit::Stuffed, Exit::Barrier];
/// All but RAX, which the host loads again, and RSP.
const CLEARED: [&str; 14] =
    ["ebx", "ecx", "edx", "esi", "edi", "ebp", "r8d", "r9d", "r10d", "r11d", "r12d", "r13d", "r14d", "r15d"];
const DIVISION: [&str; 4] = ["xor edx, edx", "mov eax, 1", "mov ecx, eax", "div ecx"];
const GUEST_SPEC_CTRL: [&str; 4] =
    ["mov ecx, MSR_SPEC_CTRL", "mov eax, [rdi + GUEST_SPEC_CTRL]", "xor edx, edx", "wrmsr"];
const HOST_SPEC_CTRL: [&str; 4] =
    ["mov eax, [rax + HOST_SPEC_CTRL]", "mov ecx, MSR_SPEC_CTRL", "xor edx, edx", "wrmsr"];
const BARRIER: [&str; 4] = ["mov ecx, MSR_PRED_CMD", "mov eax, 1", "xor edx, edx", "wrmsr"];
const STUFFING: [&str; 7] =
    [".rept RETURN_STACK_ENTRIES", "call 2f", "int3", "2:", ".endr", "add rsp, RETURN_STACK_ENTRIES * 8", "lfence"];

/// The lines of the macro, without comments.
fn lines(source: &str) -> Vec<&str> {
    let text = source.split_once(".macro world_switch ").and_then(|(_, rest)| rest.split_once(".endm")).unwrap().0;
    let code = text.lines().skip(1).map(|line| line.split("//").next().unwrap_or_default().trim());
    code.filter(|line| !line.is_empty()).collect()
}

/// The code of one variant, as the assembler sees it.
fn expanded(source: &str, exit: Exit, exchanges: bool, counts: bool) -> Vec<&str> {
    let is_met = |condition: &str| match condition.split_once(" >= ") {
        Some((r"\exit", least)) => exit as u32 >= least.parse().unwrap(),
        None if condition == r"\exchanges" => exchanges,
        None if condition == r"\is_counting" => counts,
        _ => panic!("a condition that this test does not know: {condition}"),
    };
    let (mut taken, mut code) = (Vec::new(), Vec::new());
    for line in lines(source) {
        if let Some(condition) = line.strip_prefix(".ifeq ") {
            taken.push(!is_met(condition));
        } else if let Some(condition) = line.strip_prefix(".if ") {
            taken.push(is_met(condition));
        } else if line == ".else" {
            let last = taken.last_mut().unwrap();
            *last = !*last;
        } else if line == ".endif" {
            taken.pop().unwrap();
        } else if taken.iter().all(|is_taken| *is_taken) {
            code.push(line);
        }
    }
    code
}

fn find(code: &[&str], wanted: &[&str]) -> Option<usize> {
    code.windows(wanted.len()).position(|window| window == wanted)
}

/// Returns where a variant does not keep its promise.
fn problems_of(code: &[&str], exit: Exit, exchanges: bool) -> Vec<String> {
    let at = code.iter().position(|line| *line == "vmrun rax").unwrap();
    let (before, after) = (&code[..at], &code[at + 1..]);
    let saved = after.iter().rposition(|line| line.starts_with("save_upper_registers")).unwrap();
    let cleared = |register: &str| after[saved..].contains(&format!("xor {register}, {register}").as_str());
    let host = find(after, &HOST_SPEC_CTRL);
    let barrier = find(after, &BARRIER);
    let stuffing = find(after, &STUFFING);
    let returns = after.iter().position(|line| *line == "pop rax").unwrap();
    let is_before = |step: Option<usize>| step.is_some_and(|step| saved < step && step < returns);
    let checks = [
        ("VERW right before VMRUN", exit >= Exit::Cleared, before.last().unwrap().starts_with("verw word ptr ")),
        ("all registers cleared", exit >= Exit::Cleared, CLEARED.into_iter().all(cleared)),
        ("return stack filled", exit >= Exit::Stuffed, is_before(stuffing)),
        ("division", exit >= Exit::Barrier, find(before, &DIVISION).is_some()),
        ("IBPB", exit >= Exit::Barrier, is_before(barrier) && barrier < stuffing),
        ("the guest's SPEC_CTRL", exchanges, find(before, &GUEST_SPEC_CTRL).is_some()),
        ("the host's SPEC_CTRL", exchanges, is_before(host) && (barrier.is_none() || host < barrier)),
    ];
    let differs = checks.into_iter().filter(|(_, wanted, is_there)| wanted != is_there);
    let mut problems: Vec<String> = differs.map(|(step, ..)| step.to_string()).collect();
    let branches = after[..stuffing.unwrap_or(returns)].iter().filter(|line| line.starts_with(['j', 'c', 'r']));
    problems.extend(branches.filter(|line| **line != "rdtsc").map(|line| format!("a branch: {line}")));
    problems
}

fn problems(source: &str) -> Vec<String> {
    let mut problems = Vec::new();
    for exit in EXITS {
        for (exchanges, counts) in [(false, false), (false, true), (true, false), (true, true)] {
            let code = expanded(source, exit, exchanges, counts);
            let found = problems_of(&code, exit, exchanges);
            problems.extend(found.iter().map(|step| format!("{exit:?} {exchanges} {counts}: {step}")));
        }
    }
    problems
}

#[test]
fn each_variant_of_the_world_switch_has_its_measures_and_no_others() {
    assert_eq!(problems(SOURCE), Vec::<String>::new());
    assert!(SOURCE.contains(".set RETURN_STACK_ENTRIES, 32\n"));
    let order = SOURCE.lines().filter_map(|line| line.strip_prefix("world_switches ")?.get(..5));
    let expected = (0..4).flat_map(|exit| (0..2).map(move |exchanges| format!("{exit}, {exchanges},")));
    assert!(order.eq(expected));
}

#[test]
fn a_measure_that_is_taken_out_is_missed() {
    let measures = [&DIVISION[3..], &GUEST_SPEC_CTRL[1..2], &HOST_SPEC_CTRL[..1], &BARRIER[..1], &STUFFING[1..2]];
    let mut taken_out: Vec<&str> = measures.concat();
    let clearing: Vec<String> = CLEARED.iter().map(|register| format!("    xor {register}, {register}\n")).collect();
    taken_out.extend(["verw word ptr [rip + svm_switch_selector]", "lfence", "add rsp, RETURN_STACK_ENTRIES * 8"]);
    for line in taken_out {
        assert_ne!(problems(&SOURCE.replacen(line, "nop", 1)), Vec::<String>::new(), "{line}");
    }
    let (entry, exit) = SOURCE.split_at(SOURCE.find("vmrun rax\n").unwrap());
    for line in clearing {
        let at = exit.find(&line).unwrap_or_else(|| panic!("{line}"));
        let without = format!("{entry}{}    nop\n{}", &exit[..at], &exit[at + line.len()..]);
        assert_ne!(problems(&without), Vec::<String>::new(), "{line}");
    }
}

#[test]
fn a_measure_in_the_wrong_place_is_missed() {
    let verw = "    .if \\exit >= 1\n    verw word ptr [rip + svm_switch_selector]\n    .endif\n";
    let early = SOURCE.replace(verw, "").replace("    vmload rax\n", &format!("{verw}    vmload rax\n"));
    assert_ne!(problems(&early), Vec::<String>::new());
    let branches = SOURCE.replacen("    vmsave rax\n", "    vmsave rax\n    jz 3f\n3:\n", 1);
    assert_ne!(problems(&branches), Vec::<String>::new());
}
