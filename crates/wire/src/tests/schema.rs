// SPDX-License-Identifier: MIT OR Apache-2.0
//! The description of all messages in CDDL (RFC 8610), generated from the types: `docs/protocol.cddl`. Recorded by
//! `BLESS=1 cargo test -p wire`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::string::{String, ToString};
use std::vec::Vec;
use std::{format, fs};

use serde_reflection::{ContainerFormat, Format, Named, Registry, Samples, Tracer, TracerConfig, VariantFormat};

use super::samples;
use crate::*;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/protocol.cddl");

/// The longest list of fields on one line.
const LINE_BYTES: usize = 90;

const HEAD: &str = "\
; SPDX-License-Identifier: MIT OR Apache-2.0
;
; The messages between host and tool in CDDL (RFC 8610), generated from the types of crates/wire. Around each message is
; a frame: a version byte, CRC-32, COBS stuffing (see that crate's description).
;
; A field's number is its place in its array. A newer release adds fields at the end of an array, and variants at the
; end of a choice: a reader passes over what it does not know.

";

/// The types of all messages, as the samples show them: those have each variant, and each optional field.
fn registry() -> Registry {
    let mut tracer = Tracer::new(TracerConfig::default().is_human_readable(false));
    let mut values = Samples::new();
    for frame in samples::all() {
        tracer.trace_value(&mut values, &frame).expect("a type that can be described");
    }
    macro_rules! complete {
        ($($choice:ty),*) => {$(tracer.trace_simple_type::<$choice>().expect("a choice without fields");)*};
    }
    complete!(
        ApicMode,
        CpuState,
        ExitKind,
        IommuKind,
        Level,
        PciPolicy,
        PciProgress,
        PerfEvent,
        PerfState,
        RefusalCode,
        Role
    );
    complete!(UpdateBy, UploadKind, Verify, Virtualization, VmState);
    tracer.registry().expect("the samples show all types")
}

/// A type's or a field's name as CDDL has them.
fn name(rust: &str) -> String {
    let mut name = String::new();
    for (at, c) in rust.char_indices() {
        if c.is_uppercase() && at > 0 && !name.ends_with('-') {
            name.push('-');
        }
        name.push(if c == '_' { '-' } else { c.to_ascii_lowercase() });
    }
    name
}

fn type_of(format: &Format) -> String {
    match format {
        Format::TypeName(type_name) => name(type_name),
        Format::Unit => "null".to_string(),
        Format::Bool => "bool".to_string(),
        Format::I8 | Format::I16 | Format::I32 | Format::I64 => "int".to_string(),
        Format::U8 => "uint .size 1".to_string(),
        Format::U16 => "uint .size 2".to_string(),
        Format::U32 => "uint .size 4".to_string(),
        Format::U64 => "uint .size 8".to_string(),
        Format::Str => "tstr".to_string(),
        Format::Bytes => "bstr".to_string(),
        Format::Option(content) => format!("{} / null", type_of(content)),
        Format::Seq(content) => format!("[* {}]", type_of(content)),
        Format::Tuple(contents) => format!("[{}]", contents.iter().map(type_of).collect::<Vec<_>>().join(", ")),
        Format::TupleArray { content, size } => format!("[{size}*{size} {}]", type_of(content)),
        other => panic!("no sample has {other:?}"),
    }
}

fn fields(fields: &[Named<Format>]) -> String {
    let one = |field: &Named<Format>| format!("{}: {}", name(&field.name), type_of(&field.value));
    let all: Vec<_> = fields.iter().map(one).collect();
    match all.join(", ") {
        short if short.len() <= LINE_BYTES => format!("[{short}]"),
        _ => format!("[\n      {}\n    ]", all.join(",\n      ")),
    }
}

fn variant(number: u32, variant: &VariantFormat) -> String {
    match variant {
        VariantFormat::Unit => number.to_string(),
        VariantFormat::NewType(content) => format!("[{number}, {}]", type_of(content)),
        VariantFormat::Tuple(contents) => format!("[{number}, {}]", type_of(&Format::Tuple(contents.clone()))),
        VariantFormat::Struct(of) => format!("[{number}, {}]", fields(of)),
        VariantFormat::Variable(_) => panic!("no sample has variant {number}"),
    }
}

fn choice(variants: &BTreeMap<u32, Named<VariantFormat>>) -> String {
    let mut text = String::new();
    for (place, (number, its)) in variants.iter().enumerate() {
        assert!(place == *number as usize, "the samples lack the variant {place}: {variants:#?}");
        let lead = if place == 0 { " " } else { "/" };
        let _ = write!(text, "\n  {lead} {} ; {}", variant(*number, &its.value), its.name);
    }
    text
}

fn rule(format: &ContainerFormat) -> String {
    match format {
        ContainerFormat::UnitStruct => " null".to_string(),
        ContainerFormat::NewTypeStruct(content) => format!(" {}", type_of(content)),
        ContainerFormat::TupleStruct(contents) => format!(" {}", type_of(&Format::Tuple(contents.clone()))),
        ContainerFormat::Struct(of) => format!(" {}", fields(of)),
        ContainerFormat::Enum(variants) => choice(variants),
    }
}

fn description() -> String {
    let registry = registry();
    let (frame, others): (Vec<_>, Vec<_>) = registry.iter().partition(|(type_name, _)| *type_name == "Frame");
    let rules =
        frame.into_iter().chain(others).map(|(type_name, format)| format!("{} ={}\n", name(type_name), rule(format)));
    HEAD.to_string() + &rules.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_description_of_the_messages_is_that_of_the_types() {
    let expected = description();
    if std::env::var_os("BLESS").is_some() {
        fs::write(PATH, &expected).expect("the file can be written");
    }
    let found = fs::read_to_string(PATH).expect("docs/protocol.cddl");
    assert_eq!(found, expected, "record it by BLESS=1 cargo test -p wire");
}
