// SPDX-License-Identifier: MIT OR Apache-2.0
use std::string::ToString;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::{Cost, Identity, Problems};

fn function(place: &str, vendor: u16, device: u16) -> Function {
    Function {
        place: place.parse().unwrap(),
        identity: Identity { vendor, device, ..Identity::default() },
        kind: Kind::Endpoint { bars: ArrayVec::new() },
        capabilities: ArrayVec::new(),
        serial: None,
        problems: Problems::default(),
        cost: Cost::default(),
    }
}

/// Three cards of one kind, not in the order of their addresses, one of another, and a bridge.
fn machine() -> Vec<Function> {
    let bridge = Kind::Bridge { secondary: 1, subordinate: 1 };
    std::vec![
        Function { kind: bridge, ..function("00:02.0", 0x1b36, 0x000c) },
        function("03:00.0", 0x8086, 0x10d3),
        function("01:00.0", 0x8086, 0x10d3),
        function("0001:00:00.0", 0x8086, 0x10d3),
        function("02:00.0", 0x8086, 0x10ca),
    ]
}

fn select(text: &str) -> Result<std::string::String, std::string::String> {
    let machine = machine();
    let found = Selector::parse(text).unwrap().select(&machine);
    found.map(|function| function.place.to_string()).map_err(|error| error.to_string())
}

#[test]
fn an_address_or_a_model_selects_a_function() {
    for (text, expected) in [
        ("03:00.0", "0000:03:00.0"),
        ("0001:00:00.0", "0001:00:00.0"),
        ("8086:10ca", "0000:02:00.0"),
        ("8086:10CA#1", "0000:02:00.0"),
        ("8086:10d3#1", "0000:01:00.0"),
        ("8086:10d3#2", "0000:03:00.0"),
        ("8086:10d3#3", "0001:00:00.0"),
    ] {
        assert_eq!(select(text), Ok(expected.to_string()), "{text}");
    }
}

#[test]
fn what_selects_no_function_is_refused_with_a_hint() {
    for (text, expected) in [
        ("04:00.0", "there is no function 0000:04:00.0; `baton pci` lists those there are"),
        ("8086:100e", "there is no function 8086:100e; `baton pci` lists those there are"),
        ("8086:10d3#4", "there is no function 8086:10d3#4, only 3 of this kind; write a number up to #3"),
        (
            "8086:10d3",
            "there are 3 functions 8086:10d3 (0000:01:00.0, 0000:03:00.0, 0001:00:00.0); write 8086:10d3#1 for the \
             first, or an address",
        ),
        ("00:02.0", "0000:00:02.0 is a bridge, which no guest can have; choose a function behind it"),
        ("1b36:000c", "0000:00:02.0 is a bridge, which no guest can have; choose a function behind it"),
    ] {
        assert_eq!(select(text), Err(expected.to_string()), "{text}");
    }
}

#[test]
fn of_many_candidates_the_first_are_named() {
    let many: Vec<Function> = (0..8).rev().map(|n| function(&std::format!("00:03.{n}"), 0x8086, 0x10d3)).collect();
    let error = Selector::parse("8086:10d3").unwrap().select(&many).unwrap_err().to_string();
    assert!(error.contains("there are 8 functions 8086:10d3 (0000:00:03.0, 0000:00:03.1, "), "{error}");
    assert!(error.contains("0000:00:03.3, …); write"), "{error}");
}

#[test]
fn what_is_no_selector_is_refused() {
    for text in ["", "8086", "8086:", "8086:*", "01:00", "808:10d3", "8086:10d3:0001", "00:20.0", "#1", "8086 :10d3"] {
        assert_eq!(Selector::parse(text), Err(SelectorError::NoFunction), "{text:?}");
    }
    for text in ["8086:10d3#", "8086:10d3#0", "8086:10d3#+1", "8086:10d3#65536", "8086:10d3#1#2", "8086:10d3#x"] {
        assert_eq!(Selector::parse(text), Err(SelectorError::BadNumber), "{text:?}");
    }
    assert_eq!(Selector::parse("01:00.0#1"), Err(SelectorError::NumberedAddress));
    for text in ["nvme:", "nvme: A", "nvme:A\u{e9}", "nvme:123456789012345678901"] {
        assert_eq!(Selector::parse(text), Err(SelectorError::BadSerial), "{text:?}");
    }
    use SelectorError::{BadNumber, BadSerial, NoFunction, NumberedAddress};
    for error in [NoFunction, BadNumber, NumberedAddress, BadSerial] {
        assert!(error.to_string().contains("; "), "{error} has a hint");
    }
}

/// Two ports of one disk have one number.
#[test]
fn a_serial_number_selects_the_controller_that_has_reported_it() {
    let mut machine = machine();
    let selector = Selector::parse("nvme:S4 EVNX0M").unwrap();
    let chosen = |machine: &[Function]| selector.select(machine).map(|function| function.place);
    assert_eq!(chosen(&machine), Err(SelectError::Nothing { selector }));
    machine[2].serial = Serial::new("S4 EVNX0M");
    machine[3].serial = Serial::new("S4 EVNX0N");
    assert_eq!(chosen(&machine), Ok("01:00.0".parse().unwrap()));
    machine[4].serial = Serial::new("S4 EVNX0M");
    let error = chosen(&machine).unwrap_err().to_string();
    assert!(error.ends_with("(0000:01:00.0, 0000:02:00.0); write an address"), "{error}");
}

proptest! {
    #[test]
    fn a_selector_is_read_as_it_is_printed(
        place: (u16, u8), device in 0..32u8, number in 0..8u8, model: (u16, u16), nth in prop::option::of(1..=u16::MAX),
        serial in "[!-~]([ -~]{0,18}[!-~])?",
    ) {
        let place = Bdf::new(place.0, place.1, device, number).unwrap();
        let model = Selector::Model { vendor: model.0, device: model.1, number: nth };
        for selector in [Selector::Place(place), model, Selector::Serial(Serial::new(&serial).unwrap())] {
            let text = selector.to_string();
            prop_assert_eq!(Selector::parse(&text), Ok(selector));
            prop_assert!(text.len() <= MAX_SELECTOR_BYTES, "{}", text);
        }
    }

    #[test]
    fn any_text_is_a_selector_or_refused(text in "[0-9a-f:.#nvme ]{0,20}") {
        if let Ok(selector) = Selector::parse(&text) {
            prop_assert_eq!(Selector::parse(&selector.to_string()), Ok(selector));
        }
    }

    /// By address, and by the number among functions of one model, each function is found and no other is.
    #[test]
    fn every_function_can_be_selected(
        places in prop::collection::hash_set((0..2u16, 0..3u8, 0..32u8, 0..8u8), 1..12), models in 1..3u16,
    ) {
        let place = |(segment, bus, device, function)| Bdf::new(segment, bus, device, function).unwrap();
        let of = |(index, at)| Function { place: place(at), ..function("00:00.0", 0x8086, index as u16 % models) };
        let machine: Vec<Function> = places.into_iter().enumerate().map(of).collect();
        for model in 0..models {
            let mut rising: Vec<Bdf> =
                machine.iter().filter(|function| function.identity.device == model).map(|f| f.place).collect();
            rising.sort_unstable();
            for (index, &place) in rising.iter().enumerate() {
                let numbered = Selector::Model { vendor: 0x8086, device: model, number: Some(index as u16 + 1) };
                prop_assert_eq!(numbered.select(&machine).map(|function| function.place), Ok(place));
                prop_assert_eq!(Selector::Place(place).select(&machine).map(|function| function.place), Ok(place));
            }
            let only = Selector::Model { vendor: 0x8086, device: model, number: None }.select(&machine);
            prop_assert_eq!(only.is_ok(), rising.len() == 1);
            let more = Selector::Model { vendor: 0x8086, device: model, number: Some(rising.len() as u16 + 1) };
            prop_assert!(more.select(&machine).is_err());
        }
    }
}
