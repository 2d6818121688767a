// SPDX-License-Identifier: MIT OR Apache-2.0
//! Imports and cycles as the check finds them, in crates of a few lines.

use super::cycles::cycles;
use super::resolve::{Crate, Sources};

fn sources(files: &[(&str, &str)]) -> Sources {
    files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

/// Each import as `importing -> imported: names`.
fn imports(files: &[(&str, &str)]) -> Vec<String> {
    let imports = read(files).imports();
    let line = |names: Vec<&str>| names.join(", ");
    imports
        .iter()
        .map(|((a, b), names)| format!("{a} -> {b}: {}", line(names.iter().map(|n| &**n).collect())))
        .collect()
}

fn read(files: &[(&str, &str)]) -> Crate {
    Crate::read(&sources(files)).expect("read")
}

fn found(files: &[(&str, &str)]) -> Vec<String> {
    cycles(&read(files).imports()).iter().map(ToString::to_string).collect()
}

#[test]
fn a_use_is_an_import_of_the_file_that_defines_the_name() {
    let files = [("lib.rs", "mod a; mod b;"), ("a.rs", "use crate::b::{self, B as C};"), ("b.rs", "pub struct B;")];
    assert_eq!(imports(&files), ["a.rs -> b.rs: B"]);
}

#[test]
fn a_re_export_imports_and_leads_to_the_definition() {
    let files = [("lib.rs", "mod a; mod b; pub use b::B;"), ("a.rs", "use crate::B;"), ("b.rs", "pub struct B;")];
    assert_eq!(imports(&files), ["a.rs -> b.rs: B", "lib.rs -> b.rs: B"]);
    assert!(found(&files).is_empty());
}

#[test]
fn a_path_in_code_is_an_import() {
    let b = ("b.rs", "pub enum B { X } pub const fn b() {}");
    for code in ["fn f() { crate::b::b() }", "fn f(_: super::b::B) {}", "use crate::b; fn f() { b::b() }"] {
        assert_eq!(imports(&[("lib.rs", "mod a; mod b;"), ("a.rs", code), b]).len(), 1, "{code}");
    }
    let child = [("lib.rs", "mod b; fn f() { matches!(1, self::b::B::X) }"), b];
    assert_eq!(imports(&child), ["lib.rs -> b.rs: B"]);
}

#[test]
fn what_a_macro_is_given_or_makes_is_read() {
    let a = "macro_rules! m { () => { $crate::b::B } } fn f() { g!([crate::c::C]) }";
    let files = [("lib.rs", "mod a; mod b; mod c;"), ("a.rs", a), ("b.rs", "struct B;"), ("c.rs", "struct C;")];
    assert_eq!(imports(&files), ["a.rs -> b.rs: B", "a.rs -> c.rs: C"]);
}

#[test]
fn a_name_that_no_text_defines_is_a_macros_of_its_module() {
    let files = [("lib.rs", "mod a; mod b;"), ("a.rs", "use crate::b::Made;"), ("b.rs", "make! { Made }")];
    assert_eq!(imports(&files), ["a.rs -> b.rs: Made"]);
}

#[test]
fn an_import_of_all_names_follows_re_exports() {
    let b = [("b/mod.rs", "mod c; pub use c::*;"), ("b/c.rs", "pub struct C;")];
    let all = [&[("lib.rs", "mod a; mod b;"), ("a.rs", "use crate::b::*;")], &b[..]].concat();
    assert_eq!(imports(&all), ["a.rs -> b/c.rs: *", "a.rs -> b/mod.rs: *", "b/mod.rs -> b/c.rs: *"]);
    let one = [&[("lib.rs", "mod a; mod b;"), ("a.rs", "use crate::b::C;")], &b[..]].concat();
    assert_eq!(imports(&one), ["a.rs -> b/c.rs: C", "b/mod.rs -> b/c.rs: *"]);
}

#[test]
fn tests_documentation_and_other_crates_are_left_out() {
    let a =
        "#[cfg(test)] use crate::b::B; #[cfg(doc)] use crate::b::B; #[cfg(any(test, unix))] fn f() { crate::b::f() }
        struct A; impl A { #[cfg(test)] fn f() { crate::b::f() } }
        use core::fmt; use b::B; fn g() { fmt::write() } #[cfg(test)] mod not_there;";
    let files = [("lib.rs", "mod a; mod b;"), ("a.rs", a), ("b.rs", "pub struct B;")];
    assert!(imports(&files).is_empty());
    let not = "#[cfg(not(test))] use crate::b::B;";
    assert_eq!(imports(&[("lib.rs", "mod a; mod b;"), ("a.rs", not), ("b.rs", "pub struct B;")]), ["a.rs -> b.rs: B"]);
}

#[test]
fn a_function_called_as_a_module_is_apart_from_it() {
    let a = ("a.rs", "mod b; pub use self::b::B; pub fn b() {}");
    let [b, c] = [("a/b.rs", "pub struct B;"), ("c.rs", "use crate::a::{B, b};")];
    let all = imports(&[("lib.rs", "mod a; mod c;"), a, b, c]);
    assert_eq!(all, ["a.rs -> a/b.rs: B", "c.rs -> a.rs: b", "c.rs -> a/b.rs: B"]);
}

#[test]
fn a_module_in_braces_is_its_file() {
    let a = "mod inside { use super::A; pub struct I; } struct A; use inside::I; use crate::b::number::ONE;";
    let files = [("lib.rs", "mod a; mod b;"), ("a.rs", a), ("b.rs", "pub mod number { pub const ONE: u8 = 1; }")];
    assert_eq!(imports(&files), ["a.rs -> b.rs: ONE"]);
}

#[test]
fn a_child_and_its_parent_that_import_each_other_are_a_cycle() {
    let files = [("lib.rs", "mod a; pub use a::A; pub struct L;"), ("a.rs", "pub struct A(super::L);")];
    assert_eq!(found(&files), ["a.rs -(L)-> lib.rs -(A)-> a.rs"]);
    assert!(found(&[("lib.rs", "mod a; pub struct L;"), files[1]]).is_empty());
    assert!(found(&[files[0], ("a.rs", "pub struct A;")]).is_empty());
}

#[test]
fn every_cycle_is_found_once() {
    let lib = ("lib.rs", "mod a; mod b; mod c; mod d;");
    let [a, c] = [("a.rs", "use crate::b::B; pub struct A;"), ("c.rs", "use crate::{a::A, d::D}; pub struct C;")];
    let [b, d] = [("b.rs", "use crate::c::C; pub struct B;"), ("d.rs", "use crate::c::C; pub struct D;")];
    assert_eq!(found(&[lib, a, b, c, d]), ["a.rs -(B)-> b.rs -(C)-> c.rs -(A)-> a.rs", "c.rs -(D)-> d.rs -(C)-> c.rs"]);
    assert!(found(&[lib, a, ("b.rs", "pub struct B;"), c, ("d.rs", "pub struct D;")]).is_empty());
}

#[test]
#[should_panic(expected = "b/mod.rs is not there")]
fn a_module_without_a_file_is_refused() {
    imports(&[("lib.rs", "mod b;")]);
}
