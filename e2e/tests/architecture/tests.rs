// SPDX-License-Identifier: MIT OR Apache-2.0
//! The checks themselves can fail.

use crate::files::Tree;
use crate::statics::{listed, static_in};
use crate::walks::{calls, problems};

#[test]
fn a_file_that_does_not_exist_is_found() {
    let tree = Tree::from(&["crates", "crates/vm", "crates/vm/src/exit.rs", "cli", "cli/src/main.rs"]);
    let missing = |text: &str| tree.missing_from(text, &tree.named_in(text)).join(" ");
    assert_eq!(missing("`crates/vm` has `exit.rs`, `src/exit.rs`; `x::y`, `a.b`, `/init`"), "");
    assert_eq!(missing("`crates/vm` has `exits.rs`"), "exits.rs");
    assert_eq!(missing("`crates/vm` and `main.rs`, which is elsewhere"), "main.rs");
    assert_eq!(missing("`crates/gone` and `cli/src`"), "crates/gone cli/src");
    assert_eq!(missing("```text\n`crates/gone`\n```\n`cli/`"), "");
}

#[test]
fn a_walk_that_goes_up_or_names_no_function_is_found() {
    let read = |path: &str| match path {
        "hypervisor/src/control/a.rs" => Some("fn top() { low(); gone() }".to_owned()),
        "hypervisor/src/arch/b.rs" => Some("pub fn low() { top() }".to_owned()),
        "crates/c.rs" => Some("fn middle<T>() { top() } // low".to_owned()),
        _ => None,
    };
    let found = |rows: &[(&str, &str)]| {
        let rows: Vec<_> = rows.iter().map(|(call, file)| format!("| {call} | `{file}` | it |\n")).collect();
        problems(&calls(&rows.concat()), read).len()
    };
    let (top, low) = (("`top`", "hypervisor/src/control/a.rs"), ("· `low`", "hypervisor/src/arch/b.rs"));
    assert_eq!(found(&[top, low]), 0);
    assert_eq!(found(&[top, ("· `gone`", "crates/c.rs")]), 1, "no such function");
    assert_eq!(found(&[top, ("· `middle`", "crates/c.rs")]), 1, "nothing calls it");
    assert_eq!(found(&[("`low`", low.1), ("· `top`", top.1)]), 1, "upward");
    assert_eq!(found(&[("`low`", low.1), ("·· `top`", "hypervisor/src/gone.rs")]), 2, "too deep, and no such file");
    let through_crate = [("`low`", low.1), ("· `middle`", "crates/c.rs"), ("·· `top`", top.1)];
    assert_eq!(found(&through_crate), 2, "upward through a crate, which nothing calls");
}

#[test]
fn statics_are_found_however_they_are_written() {
    for (line, name) in [
        ("static A: u8 = 0;", "A"),
        ("    pub(crate) static mut b_2: [u8; 3] =", "b_2"),
        ("pub safe static HOOKS: Hooks;", "HOOKS"),
    ] {
        assert_eq!(static_in(line), Some(name), "{line}");
    }
    for line in ["// static A: u8", "fn f(a: &'static str, b: u8) {", "const A: &'static B: C", "static is: hard"] {
        assert_eq!(static_in(line).filter(|name| *name == "A"), None, "{line}");
    }
}

#[test]
fn a_static_without_a_reason_is_not_listed() {
    let text = "| `hypervisor/src/a.rs` | `A`, `B` | flags | handler |\n| `hypervisor/src/b.rs` | `C` | it | |\n";
    let names: Vec<_> = listed(text).into_iter().map(|(file, name)| format!("{file} {name}")).collect();
    assert_eq!(names, ["hypervisor/src/a.rs A", "hypervisor/src/a.rs B"]);
}
