// SPDX-License-Identifier: MIT OR Apache-2.0
use std::format;
use std::string::ToString;

use proptest::prelude::*;

use super::*;

const NETWORK: Identity = Identity { vendor: 0x8086, device: 0x100e, class: 2, subclass: 0, interface: 0, revision: 3 };

fn filter(text: &str) -> Filter {
    text.parse().unwrap()
}

fn place(text: &str) -> Bdf {
    text.parse().unwrap()
}

#[test]
fn policies_are_read() {
    assert_eq!(filter("all"), Filter::All);
    assert_eq!(filter("lazy"), Filter::Lazy);
    let Filter::Allow(patterns) = filter("allow:00:1f.3,8086:100e,1af4:*,class:02,class:0300") else { panic!() };
    let expected = [
        Pattern::Place(place("00:1f.3")),
        Pattern::Model { vendor: 0x8086, device: Some(0x100e) },
        Pattern::Model { vendor: 0x1af4, device: None },
        Pattern::Class { base: 2, sub: None },
        Pattern::Class { base: 3, sub: Some(0) },
    ];
    assert_eq!(patterns[..], expected);
}

#[test]
fn what_is_wrong_is_named_with_the_hint() {
    assert_eq!("some".parse::<Filter>(), Err(FilterError::UnknownPolicy));
    assert_eq!("allow:".parse::<Filter>(), Err(FilterError::NothingAllowed));
    let many = format!("allow:{}", ["8086:*"; 17].join(","));
    assert_eq!(many.parse::<Filter>(), Err(FilterError::TooManyPatterns));
    for bad in ["class:2", "class:020", "8086", "8086:", "00:20.0", "*:100e", "", "8086:12345"] {
        let error = format!("allow:8086:*,{bad}").parse::<Filter>().unwrap_err();
        assert_eq!(error, FilterError::BadPattern { number: 2 }, "{bad:?}");
        assert!(error.to_string().contains("pattern 2 is none: give a place"));
    }
}

#[test]
fn a_function_is_allowed_by_place_model_or_class() {
    let here = place("00:03.0");
    for text in
        ["all", "lazy", "allow:00:03.0", "allow:8086:100e", "allow:8086:*", "allow:class:02", "allow:ffff:*,class:0200"]
    {
        assert!(filter(text).allows(here, &NETWORK), "{text}");
    }
    for text in ["allow:00:03.1", "allow:0001:00:03.0", "allow:8086:100f", "allow:100e:8086", "allow:class:0201"] {
        assert!(!filter(text).allows(here, &NETWORK), "{text}");
    }
}

#[test]
fn only_places_spare_the_walk() {
    assert_eq!(filter("allow:00:03.0,00:04.0").places().unwrap()[..], [place("00:03.0"), place("00:04.0")]);
    assert_eq!(filter("allow:00:03.0,class:02").places(), None);
    assert_eq!(filter("all").places(), None);
}

proptest! {
    #[test]
    fn any_text_is_a_filter_or_refused(text in "(allow:)?[0-9a-f:.,*cls]{0,60}") {
        if let Ok(Filter::Allow(patterns)) = text.parse() {
            prop_assert!(!patterns.is_empty());
        }
    }
}
