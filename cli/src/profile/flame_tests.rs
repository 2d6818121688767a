// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

fn stack(frames: &[&str], samples: u64) -> Stack {
    Stack { frames: frames.iter().map(|&frame| frame.to_owned()).collect(), samples }
}

/// Name, left edge and width of each box.
fn boxes(svg: &str) -> Vec<(String, f64, f64)> {
    let number = |line: &str, before: &str| {
        let text = line.split_once(before).expect("is there").1;
        text[..text.find('"').expect("ends")].parse::<f64>().expect("a number")
    };
    let lines = svg.lines().filter(|line| line.starts_with("<g class=\"box\" data-"));
    let name = |line: &str| {
        let (_, title) = line.split_once("<title>").expect("a title");
        title.split_once("</title>").expect("an end").0.rsplit_once(": ").expect("a name").0.to_owned()
    };
    lines.map(|line| (name(line), number(line, "<rect x=\""), number(line, " width=\""))).collect()
}

#[test]
fn a_box_is_as_wide_as_its_share_and_stands_on_its_caller() {
    let stacks = Stacks(vec![
        stack(&["guest a"], 50),
        stack(&["run"], 5),
        stack(&["run", "exit<T>"], 15),
        stack(&["run", "print"], 30),
    ]);
    let expected = [
        ("all", 0.0, 1200.0),
        ("guest a", 0.0, 600.0),
        ("run", 600.0, 600.0),
        ("exit&lt;T&gt;", 660.0, 180.0),
        ("print", 840.0, 360.0),
    ];
    let expected = expected.map(|(name, left, width)| (name.to_owned(), left + MARGIN, width));
    assert_eq!(boxes(&draw(&stacks, "<title>")), expected);
}

#[test]
fn a_box_too_narrow_to_see_is_hidden() {
    let stacks = Stacks(vec![stack(&["idle"], 1_000_000), stack(&["once"], 1)]);
    let svg = draw(&stacks, "");
    assert!(svg.contains("<g class=\"box\" display=\"none\" data-name=\"once\""), "{svg}");
    assert_eq!(boxes(&svg).len(), 2);
}

#[test]
fn the_script_cannot_end_its_own_element() {
    assert!(!SCRIPT.contains("]]>") && !SCRIPT.contains("</script"));
}

#[test]
fn closures_and_library_functions_between_two_functions_are_left_out_and_the_innermost_stays() {
    let all = Stacks(vec![
        stack(&["run", "<core::option::Option<u32>>::map::<u32>", "exit"], 3),
        stack(&["run", "run::{closure#0}", "exit"], 2),
        stack(&["run", "<&mut F as core::ops::function::FnOnce<()>>::call_once", "exit"], 1),
        stack(&["run", "core::intrinsics::copy_nonoverlapping"], 4),
        stack(
            &["<host::A as core::fmt::Display>::fmt", "run::{{closure}}", "<[u8] as core::slice::Index>::get", "x"],
            7,
        ),
        stack(&["score::run"], 1),
    ]);
    let (stacks, left_out) = all.without_boilerplate();
    let own = "<host::A as core::fmt::Display>::fmt;x 7\n";
    assert_eq!(
        stacks.folded(),
        own.to_owned() + "run;core::intrinsics::copy_nonoverlapping 4\nrun;exit 6\nscore::run 1\n"
    );
    assert_eq!((left_out, stacks.total()), (5, all.total()));
}

#[test]
fn a_profile_without_samples_is_an_empty_picture() {
    let svg = draw(&Stacks::default(), "nothing");
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n") && svg.contains("nothing"));
}
