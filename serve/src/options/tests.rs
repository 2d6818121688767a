// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of the command line.

use clap::CommandFactory as _;
use proptest::prelude::*;

use super::*;

#[test]
fn the_command_line_is_consistent() {
    Options::command().debug_assert();
}

#[test]
fn the_history_is_bounded_unless_stated_otherwise() {
    let parsed = |more: &[&str]| {
        let options = Options::try_parse_from([&["baton serve", "--host", "a=lab:a"], more].concat());
        options.map(|options| options.history)
    };
    assert_eq!(parsed(&[]).expect("accepted"), HistoryOptions::default());
    for wrong in ["--history-days=0", "--history-size=3", "--history-size=65537", "--history-interval=0"] {
        assert!(parsed(&[wrong]).is_err(), "{wrong}");
    }
}

#[test]
fn a_place_that_lacks_a_part_is_refused_with_the_form() {
    for text in
        ["", "unix", "unix:", "tcp:9464", "tcp:localhost:9464", "tcp:127.0.0.1", "tcp:127.0.0.1:70000", "/run/x"]
    {
        let error = text.parse::<Place>().expect_err(text);
        assert!(error.contains("write unix:PATH or tcp:ADDRESS:PORT"), "{text}: {error}");
    }
    assert_eq!("tcp:[::1]:9464".parse::<Place>().expect("a place").to_string(), "tcp:[::1]:9464");
}

#[test]
fn a_host_has_a_name_that_fits_a_path_and_an_address() {
    let host: HostOption = "rack-1=tty:/dev/ttyS1,9600".parse().expect("a host");
    assert_eq!((host.name.as_str(), host.address.to_string().as_str()), ("rack-1", "tty:/dev/ttyS1,9600"));
    let cases = [
        ("tty:/dev/ttyS1", "it has no '='"),
        ("a/b=lab:x", "is no name for a host"),
        ("=lab:x", "is no name for a host"),
        ("a=ttx:/dev/ttyS1", "did you mean \"tty\"?"),
    ];
    for (text, reason) in cases {
        let error = text.parse::<HostOption>().expect_err(text);
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn a_mode_is_octal_and_an_interval_is_bounded() {
    assert_eq!(socket_mode("660"), Ok(0o660));
    assert!(["", "9", "1777", "-1"].iter().all(|text| socket_mode(text).is_err()));
    assert!(["0", "-1", "NaN", "inf", "3601", "x"].iter().all(|text| seconds(text).is_err()));
    assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
}

proptest! {
    #[test]
    fn any_text_is_a_place_a_host_or_refused(text in any::<String>()) {
        let _ = (text.parse::<Place>(), text.parse::<HostOption>(), socket_mode(&text), seconds(&text));
    }
}
